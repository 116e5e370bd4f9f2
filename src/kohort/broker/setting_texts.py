"""What each setting of the broker means, in a sentence; those that are the defaults of topics say it there."""

from collections.abc import Mapping

from kohort.broker.security.listener_settings import LISTENER_TEXTS, OF_A_LISTENER, scope_of
from kohort.broker.topic_settings import BY_BROKER_NAME

_OWN = {
    "allow.everyone.if.no.acl.found": (
        "Whether everybody may do what no entry of an access control list says anything of. Counts with an authorizer."
    ),
    "authorizer.class.name": (
        "Either of Kafka's authorizers turns ours on: from then on nobody may do anything that is not allowed by an "
        "access control list. Empty: everybody may do everything."
    ),
    "auto.create.topics.enable": "Whether a topic is made when a client first asks for it.",
    "broker.id": "The number by which clients know this broker.",
    "connection.setup.timeout.ms": (
        "How long a connection may take until its first request has come and, where somebody has to log in, until he "
        "has. Ours alone."
    ),
    "connections.max.idle.ms": "How long a connection may be silent before it is closed.",
    "delete.topic.enable": "Whether topics can be deleted.",
    "fetch.max.bytes": "The most that one answer to a fetch holds; a first batch that is larger is sent all the same.",
    "group.coordinator.max.bytes": (
        "How much memory the members of all groups may take together: subscriptions, assignments, and 1 KiB each. "
        "Ours alone."
    ),
    "group.initial.rebalance.delay.ms": "How long a new group waits for more members before its first generation.",
    "group.max.bytes": "How much of that the members of one group may take. Ours alone.",
    "group.max.session.timeout.ms": "The longest session timeout that a member may ask for.",
    "group.max.size": "How many members a group can have.",
    "group.min.session.timeout.ms": "The shortest session timeout that a member may ask for.",
    "http.allow.anonymous": (
        "Whether the HTTP port answers everybody when it listens on more than the machine's own address. Ours alone."
    ),
    "inter.broker.protocol.version": "The release in whose formats the coordinators write their records.",
    "log.cleaner.backoff.ms": "How long the cleaner rests when there is nothing to clean.",
    "log.cleaner.dedupe.buffer.size": "Memory for the keys of a log that is cleaned.",
    "log.dirs": "Where topics are kept: `--data`.",
    "log.flush.mode": (
        "When what was written is brought to the disk: before it is acknowledged, every second, or when the system "
        "likes. `os` is Kafka's way, and the default with `--memory`. Ours alone."
    ),
    "log.retention.hours": "As `log.retention.ms`, which counts before this.",
    "log.retention.minutes": "As `log.retention.ms`, which counts before this; this counts before the hours.",
    "log.roll.hours": "As `log.roll.ms`, which counts before this.",
    "max.connection.creation.rate": "How many connections are accepted a second; more have to wait.",
    "max.connections": "How many connections there may be; more wait until others end.",
    "max.connections.half.open": (
        "How many connections there may be of which nobody knows what they want; when there are more, the oldest goes. "
        "Ours alone."
    ),
    "max.connections.per.ip": "How many connections there may be from one address; more are closed at once.",
    "max.connections.per.ip.overrides": (
        "How many there may be from single addresses or hosts instead: `127.0.0.1:200,host:100`."
    ),
    "max.incremental.fetch.session.cache.slots": "How many fetch sessions are remembered.",
    "num.partitions": "How many partitions a topic has if nobody says.",
    "offset.metadata.max.bytes": "The longest text that a consumer may leave with a commit.",
    "offsets.commit.timeout.ms": "How long a commit may take to be written before its client is told that it failed.",
    "offsets.load.buffer.size": "How much is read at once when groups are loaded from their log.",
    "offsets.retention.check.interval.ms": "How often the coordinator looks for offsets that have expired.",
    "offsets.retention.minutes": "How long offsets are kept after their group has become empty.",
    "offsets.topic.compression.codec": (
        "How batches of the offsets topic are compressed: 0 not, 1 gzip, 2 snappy, 3 lz4, 4 zstd."
    ),
    "offsets.topic.num.partitions": (
        "Partitions of `__consumer_offsets` when it is made; a topic that is there keeps its own."
    ),
    "offsets.topic.segment.bytes": "The size of a segment file of `__consumer_offsets`.",
    "producer.id.expiration.ms": "How long a partition remembers a producer that no longer writes.",
    "queued.max.request.bytes": (
        "How much memory the requests of all connections may take together before nothing more is read; -1: any."
    ),
    "quota.window.num": "How many windows of time quotas are measured over.",
    "quota.window.size.seconds": "How long each of those windows is.",
    "request.receive.timeout.ms": (
        "How long the rest of a request may take to come; one of which 64 KiB have come has as long again. Ours alone."
    ),
    "socket.request.max.bytes": "The largest request that is read.",
    "store.lease.ms": (
        "For how long a broker has its store (`--store`) unless it says so again: so long after it has gone the next "
        "one takes over."
    ),
    "super.users": "Who may do everything: `User:alice;User:CN=x,OU=y`, with semicolons between them.",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": (
        "How often the coordinator looks for transactions whose time is up, and aborts them."
    ),
    "transaction.max.timeout.ms": "The longest timeout that a transaction may ask for.",
    "transaction.remove.expired.transaction.cleanup.interval.ms": (
        "How often the coordinator looks for transactional ids that have expired."
    ),
    "transaction.state.log.load.buffer.size": "How much is read at once when transactions are loaded from their log.",
    "transaction.state.log.num.partitions": (
        "Partitions of `__transaction_state` when it is made; a topic that is there keeps its own."
    ),
    "transaction.state.log.segment.bytes": "The size of a segment file of `__transaction_state`.",
    "transactional.id.expiration.ms": "How long a transactional id is remembered that is no longer used.",
}

SETTING_TEXTS: Mapping[str, str] = (
    _OWN | {name: setting.about for name, setting in BY_BROKER_NAME.items()} | dict(LISTENER_TEXTS)
)


def text_about(name: str) -> str:
    """The same for what is said for one listener."""
    return SETTING_TEXTS[scope_of(name).name if name.startswith(OF_A_LISTENER) else name]
