"""Datasets: public facts, grants, site sets, and the one way in for rows (`ingest`)."""
