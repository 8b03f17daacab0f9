"""Jobs: plan, submit, queue, release."""
