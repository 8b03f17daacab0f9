"""Privacy audits bound the loss of what is shipped from below, and catch broken twins."""
