"""Stories told with real processes, as a user would start them."""
