"""The way of an upload: from the bytes of a file to encoded chunks, never whole in memory, all or nothing.

The body is spooled to a nameless file while its SHA-256 is taken (`spool`), read in batches by the
reader of its format (`tables`, `csv_rows`, `arrays`), limited to so many rows per person (`people`),
encoded, and collected as chunks in a second nameless file (`chunks`), which one transaction then stores.
"""
