"""Tests of the service, on both databases."""
