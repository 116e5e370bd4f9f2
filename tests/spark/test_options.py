"""The options of the data source, and the filters that Spark pushes into it. No session is needed."""

from datetime import UTC, datetime
from typing import Any

import pytest

from kohort.clock import parse_moment
from kohort.log.source import BadSource
from kohort.records.replay import Rule
from kohort.spark.choices import RULES
from kohort.spark.compat import filter_classes
from kohort.spark.filters import narrowed
from kohort.spark.options import BadOption, parse_options
from kohort.spark.request import Request
from kohort.spark.schema import TABLES, schema_of


def test_options_have_defaults_and_any_case() -> None:
    options = parse_options({"PATH": "/x", "Table": "offset_commits", "startingTime": "2026-01-02T03:04:05"})
    assert (options.paths, options.table, options.topic) == (("/x",), "offset_commits", "__consumer_offsets")
    assert options.starting == 1_767_323_045_000
    assert (options.fail_fast, options.ending, options.partitions) == (False, None, None)
    assert parse_options({"paths": '["/a", "/b"]', "mode": "FAILFAST"}).fail_fast


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ({"tabel": "records"}, "no option 'tabel'"),
        ({"table": "lag"}, "no table 'lag' to read; there are records, offset_commits"),
        ({"mode": "strict"}, "must be permissive or failfast"),
        ({"columns": "group,grop", "table": "members"}, "members has no column 'grop'"),
        ({"startingTime": "yesterday"}, "neither ISO 8601"),
        ({"partitions": "0"}, "must be a number from 1"),
        ({"rule": "position"}, "no option 'rule' for records"),
        ({"rule": "newest", "table": "folded"}, "must be position or kafka-2.6"),
    ],
)
def test_an_option_that_means_nothing_is_refused(given: dict[str, str], reason: str) -> None:
    with pytest.raises(BadOption, match=reason):
        parse_options({"path": "/x"} | given)


def test_a_path_is_needed() -> None:
    with pytest.raises(BadSource, match="no path"):
        parse_options({"table": "records"})


def test_times_are_utc_unless_they_say_otherwise() -> None:
    assert parse_moment("1970-01-01") == 0
    assert parse_moment("1970-01-01T01:00:00.250+01:00") == 250
    assert parse_moment("1767323045000") == 1_767_323_045_000


def test_the_rules_are_those_of_the_replay() -> None:
    assert list(RULES) == [rule.value for rule in Rule]


def test_every_column_of_every_table_has_a_comment() -> None:
    for table in TABLES:
        for field in schema_of(table):
            assert field.metadata["comment"], (table, field.name)


def pushed(name: str, column: str, value: Any, table: str = "offset_commits", **before: Any) -> dict[str, Any]:
    filter_ = filter_classes()[name](attribute=(column,), value=value)
    return narrowed(Request(table, (), **before), filter_)


needs_filters = pytest.mark.skipif(not filter_classes(), reason="this Spark has no filters to push")


@needs_filters
def test_filters_on_group_and_topic_narrow_what_is_read() -> None:
    assert pushed("EqualTo", "group", "a") == {"groups": frozenset("a")}
    assert pushed("In", "topic", ("a", "b")) == {"topics": frozenset("ab")}
    assert pushed("In", "group", ("a", "b"), groups=frozenset("bc")) == {"groups": frozenset("b")}


@needs_filters
def test_filters_on_time_may_be_a_millisecond_too_wide() -> None:
    at = datetime(1970, 1, 1, 0, 0, 1, 500_700, tzinfo=UTC)
    assert pushed("GreaterThan", "timestamp", at) == {"starting": 1500}
    assert pushed("LessThanOrEqual", "timestamp", at) == {"ending": 1501}
    assert pushed("EqualTo", "timestamp", at, starting=1600) == {"starting": 1600, "ending": 1501}
    assert pushed("LessThan", "timestamp", 77, "records") == {"ending": 78}


@needs_filters
def test_what_cannot_be_told_from_a_key_narrows_nothing() -> None:
    assert pushed("EqualTo", "topic", "t", "assignments") == {}
    assert pushed("EqualTo", "metadata", "x") == {}
    assert pushed("EqualNullSafe", "group", None) == {"groups": None}
    assert pushed("GreaterThan", "group", "a") == {}
    assert narrowed(Request("records", ()), object()) == {}
