"""A consumer as the group coordinator sees it: what it sends, with everything that matters in plain view."""

from typing import Any

from oracle.apis import Api
from oracle.talk import TOPIC, Talk

SUBSCRIPTION = b"\0\0\0\0\0\1\0\6orders\xff\xff\xff\xff"
"""ConsumerProtocolSubscription version 0: the topic `orders`, no user data."""
SESSION_MS = 20_000
REBALANCE_MS = 20_000
NO_INSTANCE_BEFORE = {Api.JOIN_GROUP: 5, Api.SYNC_GROUP: 3, Api.HEARTBEAT: 3, Api.OFFSET_COMMIT: 7}


class Member:
    """One consumer with its own connection. What is not said follows from the answers that it got."""

    def __init__(
        self,
        talk: Talk,
        client_id: str | None = "a",
        *,
        group: str | None = None,
        instance: str | None = None,
        session: int = SESSION_MS,
        rebalance: int = REBALANCE_MS,
        protocols: tuple[tuple[str, bytes], ...] = (("range", SUBSCRIPTION),),
        protocol_type: str = "consumer",
    ) -> None:
        self.talk = talk
        self.caller = talk.client(client_id)
        self.group = talk.group if group is None else group
        self.instance = instance
        self.session, self.rebalance = session, rebalance
        self.protocols, self.protocol_type = protocols, protocol_type
        self.member_id = ""
        self.generation = -1
        self.leader_id = ""

    # Joining

    def send_join(self, version: int = 5, **changes: Any) -> None:
        values: dict[str, Any] = {
            "group_id": self.group,
            "session_timeout": self.session,
            "rebalance_timeout": self.rebalance,
            "member_id": self.member_id,
            "protocol_type": self.protocol_type,
            "protocols": [{"name": name, "metadata": metadata} for name, metadata in self.protocols],
        }
        if version == 0:
            del values["rebalance_timeout"]
        self._send(Api.JOIN_GROUP, version, values, changes)

    def joined(self) -> Any:
        answer = self.caller.receive()
        if answer is not None:
            if answer.member_id:
                self.member_id = answer.member_id
            if answer.error_code.value == 0:
                self.generation, self.leader_id = answer.generation_id, answer.leader
        return answer

    def join(self, version: int = 5, **changes: Any) -> Any:
        self.send_join(version, **changes)
        return self.joined()

    def send_enter(self, version: int = 5) -> None:
        """Join with a member id that was asked for first, unless the member is static or the version old."""
        if version >= 4 and self.instance is None and not self.member_id:
            self.join(version)
        self.send_join(version)

    def enter(self, version: int = 5) -> Any:
        self.send_enter(version)
        return self.joined()

    @property
    def is_leader(self) -> bool:
        return bool(self.member_id) and self.member_id == self.leader_id

    # Syncing

    def send_sync(self, version: int = 3, assignments: dict[str, bytes] | None = None, **changes: Any) -> None:
        values: dict[str, Any] = {
            "group_id": self.group,
            "generation_id": self.generation,
            "member_id": self.member_id,
            "assignments": [{"member_id": who, "assignment": what} for who, what in (assignments or {}).items()],
        }
        if version >= 5:
            values |= {"protocol_type": self.protocol_type, "protocol_name": self.protocols[0][0]}
        self._send(Api.SYNC_GROUP, version, values, changes)

    def synced(self) -> Any:
        return self.caller.receive()

    def sync(self, version: int = 3, assignments: dict[str, bytes] | None = None, **changes: Any) -> Any:
        self.send_sync(version, assignments, **changes)
        return self.synced()

    def settle(self, version: int = 5) -> None:
        """Enter and assign something to itself: a group of one that is Stable."""
        self.enter(version)
        self.sync(assignments={self.member_id: b"of " + (self.caller.client_id or "nobody").encode()})

    # Being a member

    def heartbeat(self, version: int = 3, **changes: Any) -> Any:
        values = {"group_id": self.group, "generation_id": self.generation, "member_id": self.member_id}
        self._send(Api.HEARTBEAT, version, values, changes)
        return self.caller.receive()

    def heartbeat_until_rebalance(self) -> None:
        """Until the coordinator has seen what another connection sent."""
        values = {"group_id": self.group, "generation_id": self.generation, "member_id": self.member_id}
        self.caller.ask_until(lambda answer: answer.error_code.value == 27, Api.HEARTBEAT, 2, **values)

    def leave(self, version: int = 2, **changes: Any) -> Any:
        values: dict[str, Any] = {"group_id": self.group}
        if version < 3:
            values["member_id"] = self.member_id
        else:
            values["members"] = [{"member_id": self.member_id, "group_instance_id": self.instance}]
        return self.caller.ask(Api.LEAVE_GROUP, version, **values | changes)

    # Offsets

    def commit(self, *offsets: tuple[int, int], version: int = 7, topic: str = TOPIC, **changes: Any) -> Any:
        partitions = [{"partition_index": partition, "committed_offset": offset} for partition, offset in offsets]
        for partition in partitions if version >= 6 else ():
            partition["committed_leader_epoch"] = -1
        values: dict[str, Any] = {
            "group_id": self.group,
            "generation_id_or_member_epoch": self.generation,
            "member_id": self.member_id,
            "topics": [{"name": topic, "partitions": partitions}],
        }
        if 2 <= version <= 4:
            values["retention_time"] = -1
        self._send(Api.OFFSET_COMMIT, version, values, changes)
        return self.caller.receive()

    def fetch(self, *partitions: int, version: int = 5, topic: str = TOPIC, **changes: Any) -> Any:
        """Committed offsets: of these partitions, or of all that the group has."""
        topics = [{"name": topic, "partition_indexes": partitions}] if partitions else None
        values = {"group_id": self.group, "topics": topics}
        return self.caller.ask(Api.OFFSET_FETCH, version, **values | changes)

    def delete_offsets(self, *partitions: int, topic: str = TOPIC) -> Any:
        wanted = [{"partition_index": partition} for partition in partitions]
        topics = [{"name": topic, "partitions": wanted}]
        return self.caller.ask(Api.OFFSET_DELETE, 0, group_id=self.group, topics=topics)

    # Looking

    def describe(self, version: int = 4, *groups: str) -> Any:
        return self.caller.ask(Api.DESCRIBE_GROUPS, version, groups=groups or (self.group,))

    def describe_until(self, state: str) -> Any:
        """Until the group is in a state."""
        return self.caller.ask_until(
            lambda answer: answer.groups[0].group_state == state, Api.DESCRIBE_GROUPS, 4, groups=(self.group,)
        )

    def describe_until_members(self, count: int) -> Any:
        """Until the group has so many members."""
        return self.caller.ask_until(
            lambda answer: len(answer.groups[0].members) == count, Api.DESCRIBE_GROUPS, 4, groups=(self.group,)
        )

    def delete_group(self, version: int = 1, *groups: str) -> Any:
        return self.caller.ask(Api.DELETE_GROUPS, version, groups_names=groups or (self.group,))

    def _send(self, api: Api, version: int, values: dict[str, Any], changes: dict[str, Any]) -> None:
        if version >= NO_INSTANCE_BEFORE[api]:
            values["group_instance_id"] = self.instance
        self.caller.send(api, version, **values | changes)


def assign(*members: Member) -> dict[str, bytes]:
    """Something for everybody."""
    return {member.member_id: b"of " + (member.caller.client_id or "nobody").encode() for member in members}


def stable_pair(talk: Talk, *, first: Member | None = None, second: Member | None = None) -> tuple[Member, Member]:
    """Two members in one generation, Stable; the first is the leader."""
    leader, follower = first or Member(talk, "a"), second or Member(talk, "b")
    leader.settle()
    follower.send_enter()
    leader.heartbeat_until_rebalance()
    leader.send_join()
    leader.joined()
    follower.joined()
    follower.send_sync()
    leader.sync(assignments=assign(leader, follower))
    follower.synced()
    return leader, follower
