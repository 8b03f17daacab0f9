"""Additive functions of records that declare how far one record can move them."""
