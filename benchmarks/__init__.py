"""Accuracy, speed and the papers' figures: the only place with non-private scores, and never shipped."""
