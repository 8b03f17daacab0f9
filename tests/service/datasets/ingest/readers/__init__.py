"""Tests of service/datasets/ingest/readers."""
