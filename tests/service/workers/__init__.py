"""Tests of service/workers."""
