"""Stages of the papers' algorithms: project rows, list candidates, search among them for centres."""
