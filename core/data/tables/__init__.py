"""Tables: kinds of columns, the codes that rows are stored as, and the geometry of a job on them."""
