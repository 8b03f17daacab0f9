"""The catalogue: datasets that their owners list for people without a grant."""
