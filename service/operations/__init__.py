"""Operations: settings, database and tables, logs, metrics, audit log, clock, supervision."""
