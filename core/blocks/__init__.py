"""The stages that algorithms are composed of; each sees rows only through a probe."""
