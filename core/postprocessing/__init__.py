"""Arithmetic on released values: free, because it never sees rows."""
