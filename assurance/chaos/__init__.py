"""Attempts to lose a job, to charge it twice, or to spend more than there is: models, races, crashes."""
