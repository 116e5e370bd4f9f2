"""How much of a log goes into a page, however long the log is."""

GROUPS = 5_000
"""Groups that have a row and a line over time; of more, those that most likely matter."""

DETAILED = 100
"""Groups of which members, partitions and rebalances are told one by one."""

BINS, FEWEST_BINS, CELLS = 240, 90, 450_000
"""Steps of time in a plot: so many, but fewer if those of all groups come to more than that."""

REBALANCES = 100
"""Of a group, the last ones."""

MEMBERS, PARTITIONS, OWNERS = 40, 50, 200
"""Of a group: members with a bar, partitions with a row, and spans of time in which a partition has one owner."""

ROWS = 500
"""Rows of a table of single things: jumps, transactions, differences, damage."""

LOUDEST = 25
"""Groups with a bar; the rest is one."""

LONG_TEXT = 200
"""Characters from which a text is long."""

LONG_TEXTS = 1_000_000
"""Characters that all long texts together may take; those that come later are cut."""
