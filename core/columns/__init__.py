"""Kinds of columns of a table: one class for each, which declares everything about it."""
