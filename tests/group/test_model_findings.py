"""What the machine has found, each as the shortest life that shows it."""

from kohort.errors import ErrorCode
from tests.group.context import GROUP, INITIAL_DELAY, PROTOCOLS, Context, Protocols, subscription

HUGE: Protocols = (("range", b"m" * 2_000_000),)
FOO: Protocols = (("range", subscription("foo")),)
BAR: Protocols = (("range", subscription("bar")),)
BAZ: Protocols = (("range", subscription("baz")),)


def static_group(protocols: Protocols = PROTOCOLS) -> Context:
    """Stable, with one static member."""
    c = Context()
    joined = c.join(instance="static", session=60_000, protocols=protocols)
    c.sleep(INITIAL_DELAY + 1)
    member = joined.result.member_id
    assert c.sync(GROUP, 1, member, {member: b""}, instance="static").result.error is ErrorCode.NONE
    return c


def test_a_rejoin_that_fails_at_once_does_not_undo_the_one_before_it_that_is_still_being_written() -> None:
    """A log refuses at once what is too large for it, while it has yet to make safe what came before."""
    c = static_group()
    c.topic.hold()
    first = c.join(instance="static", session=60_000)
    second = c.join(instance="static", session=60_000, protocols=HUGE)
    assert first.result.error is ErrorCode.FENCED_INSTANCE_ID
    assert second.result.error is ErrorCode.UNKNOWN_SERVER_ERROR
    c.topic.release()
    written = c.restarted().group().static_members
    assert c.group().static_members == written
    assert c.group().members.keys() == set(written.values())


def test_a_static_member_that_comes_back_for_other_topics_is_subscribed_to_these() -> None:
    """As it is after a restart, which knows the member by its new record only."""
    c = static_group(FOO)
    back = c.join(instance="static", session=60_000, protocols=BAR).result
    c.commit({("foo", 0): 1, ("bar", 0): 2}, member=back.member_id, generation=1, instance="static")
    assert c.restarted().group().subscribed_topics == {"bar"}
    error, deleted = c.delete_offsets([("foo", 0), ("bar", 0)]).result
    assert error is ErrorCode.NONE
    assert deleted == {("foo", 0): ErrorCode.NONE, ("bar", 0): ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC}


def test_a_rejoin_that_fails_takes_its_topics_along() -> None:
    """The one before it was written and counts."""
    c = static_group(FOO)
    c.topic.hold()
    c.join(instance="static", session=60_000, protocols=BAR)
    c.join(instance="static", session=60_000, protocols=BAZ)
    c.topic.release_one()
    c.topic.fail_held()
    assert c.restarted().group().subscribed_topics == {"bar"}
    assert c.group().subscribed_topics == {"bar"}
