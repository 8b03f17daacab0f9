"""Public rows of a dataset, which jobs may learn from: what is stored of them, and their routes."""
