"""Tests of service/operations."""
