"""Campaigns that take minutes or hours and are started by hand; tests run small samples of them."""
