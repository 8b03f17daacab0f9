"""Deliberate mistakes in the code that keeps the promise, and a campaign that asks the tests to find them."""
