"""Produce and fetch: records of 1 KiB in batches of 100, to four partitions, and all of them read again."""

from bench import client
from bench.beside import Beside, Plan, medians
from bench.client import Figures
from bench.rows import Row, bounded, progress, told
from bench.servers import Server

PARTITIONS = 4


def transferring(beside: Beside, plan: Plan) -> list[Row]:
    rows = []
    for what, acks in (("1", 1), ("all", -1)):
        rows += _with_acks(what, acks, beside, plan)
    return rows


def _with_acks(what: str, acks: int, beside: Beside, plan: Plan) -> list[Row]:
    def transfer(server: Server, number: int) -> Figures:
        topic = {"topic": f"acks-{what}-{number}", "partitions": PARTITIONS}
        produced = client.run("produce", server.address, acks=acks, mib=plan.mib, **topic)
        fetched = client.run("fetch", server.address, **topic)
        if fetched["records"] != produced["records"]:
            raise RuntimeError(f"{server.name}: {produced['records']} records went in, {fetched['records']} came out")
        return {"produce": produced["megabytes_per_second"], "fetch": fetched["megabytes_per_second"]}

    progress(f"1 KiB records, acks={what}")
    for server in beside.all:
        transfer(server, -1)
    runs = medians(plan.rounds, beside.all, transfer)
    rows = [
        told(f"1 KiB records, acks={what}: {name}", f"in {run['produce']:,.0f} MB/s, out {run['fetch']:,.0f} MB/s")
        for name, run in runs.items()
    ]
    if beside.kafka is not None:
        theirs, ours = runs[beside.kafka.name], runs[beside.os.name]
        rows += [
            bounded(f"... {way} against Kafka, flush os", ours[way] / theirs[way], 0.5, digits=2)
            for way in ("produce", "fetch")
        ]
    return rows
