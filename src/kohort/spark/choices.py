"""The words that options and commands choose from. To know them takes no library."""

PERMISSIVE, FAILFAST = MODES = ("permissive", "failfast")
"""What becomes of damage: it is passed over and told by the table `quarantine`, or ends the work."""

POSITION, KAFKA_2_6 = RULES = ("position", "kafka-2.6")
"""The rules of a replay, as `kohort.records.replay` names them."""

PARQUET, DELTA, ICEBERG = FORMATS = ("parquet", "delta", "iceberg")
"""What tables are written as."""
