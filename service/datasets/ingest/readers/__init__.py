"""Readers of files: each yields batches of rows and names bad ones."""
