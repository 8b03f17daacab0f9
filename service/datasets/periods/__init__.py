"""Periods of datasets: rows that arrive one label after the other, each with facts and a seal of its own."""
