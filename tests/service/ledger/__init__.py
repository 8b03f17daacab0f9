"""Tests of service/ledger."""
