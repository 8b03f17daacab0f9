"""Tests of everything, beside the packages they mirror."""
