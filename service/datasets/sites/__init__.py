"""Sets of public sites of a dataset: what is stored of them, their routes and wire types."""
