"""Jobs: plan, submit, queue, run, release."""
