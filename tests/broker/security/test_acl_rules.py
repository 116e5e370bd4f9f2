"""What a set of entries allows: the same that looking at each of them says."""

from collections.abc import Iterable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kohort.broker.security.acl import Acl
from kohort.broker.security.acl import Operation as Op
from kohort.broker.security.acl import PatternType as Pattern
from kohort.broker.security.acl import PermissionType as Permission
from kohort.broker.security.acl import ResourceType as Type
from kohort.broker.security.acl_rules import AclRules
from tests.broker.security.somebody import entry

IMPLIED = {
    Op.DESCRIBE: {Op.DESCRIBE, Op.READ, Op.WRITE, Op.DELETE, Op.ALTER},
    Op.DESCRIBE_CONFIGS: {Op.DESCRIBE_CONFIGS, Op.ALTER_CONFIGS},
}


def fits(acl: Acl, resource_type: Type, name: str) -> bool:
    if acl.resource_type is not resource_type:
        return False
    if acl.pattern_type is Pattern.PREFIXED:
        return name.startswith(acl.name)
    return acl.name in ("*", name)


def is_about(acl: Acl, who: str, host: str) -> bool:
    return acl.principal in (who, "User:*") and acl.host in (host, "*")


def plainly_may(
    acls: Iterable[Acl], who: str, host: str, operation: Op, resource_type: Type, name: str, *, if_none: bool
) -> bool:
    """Looks at every entry."""
    of_resource = [acl for acl in acls if fits(acl, resource_type, name)]
    if not of_resource:
        return if_none
    about = [acl for acl in of_resource if is_about(acl, who, host)]
    if any(acl.permission is Permission.DENY and acl.operation in (operation, Op.ALL) for acl in about):
        return False
    allowing = IMPLIED.get(operation, {operation}) | {Op.ALL}
    return any(acl.permission is Permission.ALLOW and acl.operation in allowing for acl in about)


def plainly_may_somewhere(acls: list[Acl], who: str, host: str, operation: Op, resource_type: Type) -> bool:
    """Tries every name that could make a difference: those that are named, and others that begin like them."""
    names = {acl.name for acl in acls} | {acl.name + "#" for acl in acls} | {"#"}
    return any(
        plainly_may(acls, who, host, operation, resource_type, name, if_none=False) for name in names if name != "*"
    )


HOSTS = ("10.0.0.1", "10.0.0.2")
USERS = ("User:alice", "User:bob")
NAMES = ("a", "b", "aa", "ab", "aab", "abb", "aabb")
TYPES = (Type.TOPIC, Type.GROUP)
CONCRETE = [operation for operation in Op if operation not in (Op.ANY, Op.ALL)]

entries = st.builds(
    Acl,
    st.sampled_from(TYPES),
    st.sampled_from((Pattern.LITERAL, Pattern.PREFIXED)),
    st.sampled_from((*NAMES, "*")),
    st.sampled_from((*USERS, "User:*")),
    st.sampled_from((*HOSTS, "*")),
    st.sampled_from((Op.ALL, *CONCRETE)),
    st.sampled_from((Permission.ALLOW, Permission.DENY)),
)
changes = st.lists(st.tuples(st.booleans(), entries), max_size=30)


@settings(max_examples=400, deadline=None)
@given(changes, st.booleans())
def test_rules_allow_what_a_look_at_every_entry_allows(done: list[tuple[bool, Acl]], if_none: bool) -> None:
    rules, plain = AclRules(), dict[Acl, None]()
    for is_new, acl in done:
        if is_new:
            rules.add(acl)
            plain[acl] = None
        else:
            rules.remove(acl)
            plain.pop(acl, None)
    assert set(rules) == set(plain)
    assert len(rules) == len(plain)
    for who in USERS:
        for operation in (Op.READ, Op.DESCRIBE, Op.DESCRIBE_CONFIGS, Op.ALTER_CONFIGS):
            for name in (*NAMES, "*", ""):
                asked = (who, HOSTS[0], operation, Type.TOPIC, name)
                assert rules.may(*asked, if_none=if_none) == plainly_may(plain, *asked, if_none=if_none)
            somewhere = (who, HOSTS[0], operation, Type.TOPIC)
            assert rules.may_somewhere(*somewhere, if_none=False) == plainly_may_somewhere(list(plain), *somewhere)


@settings(max_examples=100, deadline=None)
@given(st.lists(entries, max_size=20, unique=True))
def test_when_all_is_removed_nothing_is_left(acls: list[Acl]) -> None:
    rules = AclRules(acls)
    for acl in acls:
        rules.remove(acl)
    assert list(rules) == []
    assert rules.may("User:alice", HOSTS[0], Op.READ, Type.TOPIC, "a", if_none=True)
    assert not any([rules._literal, rules._prefixed, *rules._lengths.values()])  # it does not grow for ever


def may(acls: list[Acl], operation: Op, name: str = "orders", who: str = "User:alice") -> bool:
    return AclRules(acls).may(who, HOSTS[0], operation, Type.TOPIC, name, if_none=False)


@pytest.mark.parametrize("operation", [Op.READ, Op.WRITE, Op.DELETE, Op.ALTER])
def test_whoever_may_do_something_with_a_topic_may_describe_it(operation: Op) -> None:
    acls = [entry("alice", operation, Type.TOPIC, "orders")]
    assert may(acls, Op.DESCRIBE)
    assert not may(acls, Op.DESCRIBE_CONFIGS)
    assert not may(acls, Op.CREATE)


def test_what_is_denied_denies_nothing_else() -> None:
    acls = [entry("alice", Op.ALL, Type.TOPIC, "orders"), entry("alice", Op.READ, Type.TOPIC, "orders", deny=True)]
    assert not may(acls, Op.READ)
    assert may(acls, Op.DESCRIBE)


def test_who_is_denied_all_may_do_nothing() -> None:
    acls = [entry("alice", Op.READ, Type.TOPIC, "orders"), entry("User:*", Op.ALL, Type.TOPIC, "*", deny=True)]
    assert not may(acls, Op.READ)


def test_a_prefix_is_no_other_topics_name() -> None:
    acls = [entry("alice", Op.READ, Type.TOPIC, "orders", prefixed=True)]
    assert may(acls, Op.READ, "orders-eu")
    assert may(acls, Op.READ, "orders")
    assert not may(acls, Op.READ, "order")
    assert not may(acls, Op.READ, "Orders")
    assert not may(acls, Op.READ, "orders-eu", who="User:alic")


def test_a_star_stands_for_all_only_as_a_whole_name() -> None:
    assert may([entry("alice", Op.READ, Type.TOPIC, "*")], Op.READ)
    assert not may([entry("alice", Op.READ, Type.TOPIC, "*", prefixed=True)], Op.READ)
    assert not may([entry("alice", Op.READ, Type.TOPIC, "ord*")], Op.READ)
