"""Tests of service/datasets."""
