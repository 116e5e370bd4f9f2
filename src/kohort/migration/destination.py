"""Topics in the cluster that gets them.

While a topic is copied it keeps everything: records may be older than its retention, and what the cleaner takes could
not be verified. So it is made with settings of its own for that time, which are also what tells a topic that is half
copied from one that somebody else has made. The source's settings come last of all.
"""

from collections.abc import Mapping

from kohort.admin.cluster import Cluster
from kohort.admin.messages import CREATE_TOPICS
from kohort.admin.refusals import in_words, named
from kohort.errors import ErrorCode
from kohort.migration.report import TopicReport
from kohort.migration.settings import change_settings, own_settings, reason_of
from kohort.migration.source import SourceTopic

WHILE_COPYING: Mapping[str, str] = {
    "cleanup.policy": "delete",
    "message.timestamp.type": "CreateTime",
    "retention.bytes": "-1",
    "retention.ms": "-1",
}
_FROM_THE_BEGINNING = "max.message.bytes"
_OF_THE_OLD_CLUSTER = "belongs to the brokers of the source"
_GONE = "brokers since 4.0 do not know it"
_LEFT_OUT = {
    "follower.replication.throttled.replicas": _OF_THE_OLD_CLUSTER,
    "leader.replication.throttled.replicas": _OF_THE_OLD_CLUSTER,
    "message.downconversion.enable": _GONE,
    "message.format.version": _GONE,
}
_BROKERS_CHOICE = -1
_TIMEOUT_MS = 30_000
_NOT_CONTROLLER = 41
_MAY_BE_MADE = (ErrorCode.TOPIC_ALREADY_EXISTS, ErrorCode.REQUEST_TIMED_OUT)


class Destination:
    """A cluster that topics are copied to."""

    def __init__(self, cluster: Cluster, replication_factor: int | None) -> None:
        self.cluster = cluster
        self._replication_factor = _BROKERS_CHOICE if replication_factor is None else replication_factor

    def look_at(self, topic: SourceTopic) -> TopicReport:
        """What there is of a topic, and what stands in its way."""
        report = TopicReport(topic.name, topic.partition_count)
        report.missing_partitions = sorted(set(range(topic.partition_count)) - set(topic.partitions))
        if topic.settings is not None:
            report.settings = dict(topic.settings)
            report.settings_left_out = {name: why for name, why in _LEFT_OUT.items() if name in topic.settings}
        there = len(self.cluster.partitions_of(topic.name))
        if there:
            settings = own_settings(self.cluster, [topic.name]).get(topic.name, {})
            report.made = WHILE_COPYING.items() <= settings.items()
            if there < topic.partition_count or (there > topic.partition_count and topic.is_count_sure):
                report.problem = f"has {there} partitions in the destination, {topic.partition_count} in the source"
        return report

    def make(self, topic: SourceTopic, report: TopicReport) -> None:
        """Make the topic if it is not there; what is refused becomes its problem."""
        if self.cluster.partitions_of(topic.name):
            return
        settings = dict(WHILE_COPYING)
        if topic.settings is not None and _FROM_THE_BEGINNING in topic.settings:
            settings[_FROM_THE_BEGINNING] = topic.settings[_FROM_THE_BEGINNING]
        report.problem = self.cluster.run(self._make(topic, settings))
        report.made = report.problem is None

    def hand_over(self, topic: SourceTopic, report: TopicReport) -> None:
        """Give a topic that we have made the settings that it has in the source, if anybody knows them."""
        if topic.settings is None or not report.made:
            return
        changes: dict[str, str | None] = dict.fromkeys(WHILE_COPYING)
        changes |= {name: value for name, value in topic.settings.items() if name not in _LEFT_OUT}
        if refused := change_settings(self.cluster, topic.name, changes):
            told = ", ".join(f"{named(name)}: {reason}" for name, reason in sorted(refused.items()))
            report.problem = f"settings were refused: {told}"

    async def _make(self, topic: SourceTopic, settings: Mapping[str, str]) -> str | None:
        """Why it cannot be made; None when each of its partitions has a leader."""
        cluster = self.cluster
        wanted = {
            "name": topic.name,
            "num_partitions": topic.partition_count,
            "replication_factor": self._replication_factor,
            "assignments": (),
            "configs": [{"name": name, "value": value} for name, value in settings.items()],
        }
        deadline = cluster.deadline()
        while True:
            controller = cluster.controller()
            if controller is None:
                answer = await cluster.ask_any(CREATE_TOPICS, topics=[wanted], timeout=_TIMEOUT_MS)
            else:
                answer = await cluster.ask(controller, CREATE_TOPICS, topics=[wanted], timeout=_TIMEOUT_MS)
            (told,) = answer.topics
            if not told.error_code or told.error_code in _MAY_BE_MADE:
                break
            if told.error_code != _NOT_CONTROLLER or cluster.now() > deadline:
                return f"cannot be made: {reason_of(told)}"
            await cluster.pause()
            await cluster.look_again()
        await cluster.look_again()
        while any(cluster.leader(topic.name, number) is None for number in range(topic.partition_count)):
            if cluster.now() > deadline:
                return f"cannot be made: {in_words(told.error_code)}" if told.error_code else "has no leaders"
            await cluster.pause()
            await cluster.look_again()
        return None
