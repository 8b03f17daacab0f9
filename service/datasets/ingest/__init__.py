"""The one way in for rows: from the bytes of a file to encoded chunks, all or nothing.

The body is spooled to disk while its SHA-256 is taken (`spool`), read in batches by the reader of its format
(`readers`), limited to some rows per person (`rows_per_person`), encoded (`encode`),
collected as chunks in a second file (`chunks`), and stored in one transaction (`store`).
"""
