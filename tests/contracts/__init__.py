"""Contracts of every algorithm: what each promises, and the plans and transcripts that are pinned."""
