"""Populations: people who may be in several datasets, and a total of what they lose in all of them."""
