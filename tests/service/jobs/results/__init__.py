"""Tests of service/jobs/results."""
