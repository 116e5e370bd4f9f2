"""The offsets topic on Spark: a data source, the replay in pieces, and the tables made of both."""
