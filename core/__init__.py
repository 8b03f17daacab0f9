"""Differentially private clustering as a library: no web, no database."""
