"""The way from one cluster to another: topics with their records, groups with their offsets, copied and verified."""
