"""The integers that a statistic needs, per level: of arrays and of tables, equal to the last unit."""
