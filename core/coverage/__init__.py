"""Families of sets for maximum coverage, and the loop that picks from them."""
