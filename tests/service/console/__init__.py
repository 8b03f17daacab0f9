"""Tests of service/console."""
