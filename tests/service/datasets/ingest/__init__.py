"""Tests of service/datasets/ingest."""
