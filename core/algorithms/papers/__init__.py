"""Algorithms from the literature, corrected where a proof has a gap, with the stages that only they need."""
