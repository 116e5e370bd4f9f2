"""The tables of a store, in a schema of their own.

`batches` has what stands in a log's files elsewhere, batch by batch, in Kafka's bytes. `partitions` says where each log
begins and ends and in which epoch it is written: whoever takes the store over raises all epochs, and an append names
the epoch that it believes in and the end that it continues, so of two who think that they own a partition only one can
write. `store` says who owns it all, and for how long unless he says so again.
"""

from psycopg import Connection

from kohort.errors import StorageFailed

FORMAT = 1

_LOCK = 0x6B6F686F7274
"""Two who make the tables at once would fail over each other."""

_TABLES = """
CREATE SCHEMA IF NOT EXISTS kohort;
CREATE TABLE IF NOT EXISTS kohort.store (
    format int NOT NULL,
    owner uuid,
    broker_id int,
    beats bigint NOT NULL DEFAULT 0,
    lease_until timestamptz NOT NULL DEFAULT '-infinity'
);
CREATE TABLE IF NOT EXISTS kohort.documents (
    name text PRIMARY KEY,
    data bytea NOT NULL
);
CREATE TABLE IF NOT EXISTS kohort.partitions (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    topic text NOT NULL,
    number int NOT NULL,
    epoch int NOT NULL DEFAULT 0,
    start_offset bigint NOT NULL DEFAULT 0,
    end_offset bigint NOT NULL DEFAULT 0,
    is_doomed boolean NOT NULL DEFAULT false
) WITH (fillfactor = 50);
CREATE UNIQUE INDEX IF NOT EXISTS partitions_by_name ON kohort.partitions (topic, number) WHERE NOT is_doomed;
CREATE TABLE IF NOT EXISTS kohort.batches (
    partition_id bigint NOT NULL REFERENCES kohort.partitions ON DELETE CASCADE,
    base_offset bigint NOT NULL,
    next_offset bigint NOT NULL,
    data bytea NOT NULL,
    PRIMARY KEY (partition_id, base_offset)
);
ALTER TABLE kohort.batches ALTER data SET STORAGE EXTERNAL;
INSERT INTO kohort.store (format) SELECT {format} WHERE NOT EXISTS (SELECT FROM kohort.store);
"""


def prepare(connection: Connection) -> None:
    """The tables are there; `StorageFailed` if they are of a format that we do not know."""
    with connection.transaction():
        connection.execute("SELECT pg_advisory_xact_lock(%s)", (_LOCK,))
        known = connection.execute("SELECT to_regclass('kohort.store') IS NOT NULL").fetchone()
        if known == (False,):
            connection.execute(_TABLES.replace("{format}", str(FORMAT)).encode())
        found = connection.execute("SELECT format FROM kohort.store").fetchall()
    if found != [(FORMAT,)]:
        raise StorageFailed(f"the store is of format {found}, this kohort knows {FORMAT}")
