"""Tests of the console, most of them in a real browser against a real service."""
