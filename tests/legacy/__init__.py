"""Databases that earlier versions made: they migrate, verify, and give out what they gave out then."""
