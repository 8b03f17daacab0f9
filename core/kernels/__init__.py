"""Exact integer arithmetic over blocks of rows."""
