"""Tests of service/datasets/sites."""
