"""The part of `docs/pipeline.md` about live clusters and streams."""

from collections.abc import Iterator

from kohort.log.security import SETTINGS

LIVE = """## A live cluster

```
kohort pipeline kafka://HOST:PORT --out DIR [--command-config client.properties]
```

makes the same tables of a running cluster. Its topic is fetched once, as the raw batches that stand in the log, so that
control records, producer ids and open transactions are there, which consumers do not see; the tables are then made from
that copy, whatever the cluster cleans meanwhile. The ends of topics for `lag` are asked from the cluster
(`source` is `end_offsets`), and the batches at committed offsets tell how old the next record of a group is. Reading
needs the right to describe and read `__consumer_offsets` and, for lag, the topics that groups read.

`--command-config` is the file that Kafka's own tools take. `kohort restore --bootstrap` takes it too. These settings
are understood, and librdkafka's names for the same; nothing secret of them is in a message, a plan or `kohort.json`:
"""

SOURCE = """
The data source takes them with `kafka.` in front:

```python
commits = (
    spark.read.format("kohort")
    .option("kafka.bootstrap.servers", "broker:9093")
    .option("kafka.security.protocol", "SASL_SSL")
    .option("kafka.sasl.mechanism", "SCRAM-SHA-512")
    .option("kafka.sasl.jaas.config", 'ScramLoginModule required username="me" password="...";')
    .option("kafka.ssl.truststore.type", "PEM")
    .option("kafka.ssl.truststore.location", "authorities.pem")
    .option("table", "offset_commits")
    .load()
)
```

A partition is fetched by several tasks, each a stretch of offsets; each query asks the cluster again.

## Streams

```python
commits = spark.readStream.format("kohort").option("table", "offset_commits").load("kafka://broker:9092")
```

reads a cluster, or files to which a broker appends (`load(path)`), as a structured stream. `startingOffsets` is
`earliest` (the default), `latest` or the marks of a stream in JSON: `{"0": {"offset": 12}}`. From Spark 4.2 on
`maxOffsetsPerTrigger` limits a batch; it is shared out by what each partition has, and goes on to the end of the batch
of records that it falls into where files are read. `Trigger.AvailableNow` reads what is there at its start. The rows of
a batch are fixed by its marks in the checkpoint: a batch that is done again holds the same rows, and all batches
together hold what a batch query holds. If a broker has cleaned the log before a stream read it, what was cleaned is
missing from both.

**Transactions.** For a batch of a stream the log ends where the batch does. A commit whose transaction ends in a later
batch is `open`, for rows that were given out do not change. Whoever needs its fate joins the markers, which are rows of
`records` (`control`, `control_type`, `producer_id`), or asks a batch query, or lets `--follow` do it.

## Keeping tables current

```
kohort pipeline SOURCE --out DIR --follow [--refresh-seconds 60]
```

makes all tables, and then keeps them current until Ctrl-C, which lets a batch that is under way finish. Only what has
come is read. `records`, `offset_commits`, `group_generations`, `members`, `assignments` and `quarantine` grow by files,
the current and pending tables are replaced with every batch, from the state of the replay that is kept in
`DIR/.follow`. A commit whose transaction was open gets its fate when that ends. The derived tables (`rebalances`,
`lag`, `lag_status`, `expiry`, `topic_health`, `offset_jumps`) need the whole history and are made anew every
`--refresh-seconds`, if something has come. Another start with the same arguments goes on where the last one ended, also
if that died; a run without `--follow` makes everything anew. Only Parquet can be followed.

## Spark's progress as a consumer group

Structured Streaming commits nothing to Kafka, so no tool sees how far behind a query is (SPARK-27549). With

```python
from kohort.spark.listener import OffsetCommitListener

listener = OffsetCommitListener("broker:9092", "my-query", kafka={"security.protocol": "PLAINTEXT"})
spark.streams.addListener(listener)
```

the ends of each batch that Spark's Kafka source has finished are committed under the group `my-query`, in the
background. A function from the query's name to a group gives each query its own. Nobody reads from the group: Spark's
checkpoint stays what counts. A cluster that is away is told of in the log (`kohort.spark.listener`), and the next batch
commits anew. `listener.close()` commits what is left.
"""


def sections() -> str:
    return "\n".join([LIVE, "\n".join(_settings()), SOURCE])


def _settings() -> Iterator[str]:
    yield "| setting | |"
    yield "|---|---|"
    for name, meaning in SETTINGS.items():
        yield f"| `{name}` | {meaning} |"
