"""Answers that tell an error, valid in every version of every API.

A request that is to fail is not shown to the broker: its answer is made of the request and the schema of the answer.
Where the answer has room for an error there is an entry for each that the request asks about, with the names and
numbers by which the client knows it, and the error in every place for one; all else is as empty as it may be.
"""

from dataclasses import MISSING, Field, fields
from types import SimpleNamespace
from typing import Any, get_args, get_origin, get_type_hints

from kohort.broker.answer_errors import errors_of
from kohort.broker.call import Call
from kohort.broker.request_reader import reader_of
from kohort.broker.schemas import load_response_schema
from kohort.broker.wire import API_VERSIONS
from kohort.errors import ErrorCode

_ASKED_IN = {
    "coordinators": ("coordinator_keys",),
    "entries": ("entries",),
    "filter_results": ("filters",),
    "groups": ("groups",),
    "members": ("members",),
    "partition_responses": ("partition_data",),
    "partitions": ("partitions", "partition_indexes"),
    "responses": ("topic_data", "topics", "topic_names", "resources"),
    "results": ("resources", "topics", "groups_names", "creations", "deletions", "upsertions"),
    "results_by_partition": ("partitions",),
    "results_by_topic_v3_and_below": ("v3_and_below_topics",),
    "topics": ("topics",),
    "transaction_states": ("transactional_ids",),
}
"""Where a request names what the entries of its answer are about."""

_NAMED_BY = {
    "group_id": ("group_id",),
    "group_instance_id": ("group_instance_id",),
    "index": ("index",),
    "key": ("key",),
    "member_id": ("member_id",),
    "name": ("name",),
    "partition": ("partition",),
    "partition_index": ("partition_index", "partition"),
    "resource_name": ("resource_name",),
    "resource_type": ("resource_type",),
    "topic": ("topic",),
    "topic_id": ("topic_id",),
    "transactional_id": ("transactional_id",),
    "user": ("name",),
}
"""The fields by which a client knows an entry, and what its request calls them."""

_EMPTY: dict[str, Any] = {"bool": False, "bytes": b"", "records": b"", "string": "", "uuid": None, "datetime_i64": 0}
_NULLABLE = ("string", "datetime_i64")
_NO_SESSION = {"session_id": 0}
_NOTHING = -1


def error_answer(call: Call, error: ErrorCode) -> dict[str, Any]:
    """What to answer."""
    return _entry(load_response_schema(call.api_key, call.version), call.request, error)


def with_error(call: Call, body: bytes, error: ErrorCode) -> dict[str, Any]:
    """An answer as it was written, header and all, but with the error in every place for one."""
    schema = load_response_schema(call.api_key, call.version)
    has_tags = schema.__flexible__ and call.api_key != API_VERSIONS
    values, _ = reader_of(schema)(body, 5 if has_tags else 4)
    return _retold(schema, values, error)


def _entry(schema: type[Any], asked: Any, error: ErrorCode) -> dict[str, Any]:
    hints = get_type_hints(schema)
    values: dict[str, Any] = {}
    for field in fields(schema):
        if field.metadata.get("kafka_type") == "error_code":
            values[field.name] = error
        elif (element := _element(hints[field.name])) is not None and errors_of(element) is not None:
            values[field.name] = [_entry(element, one, error) for one in _asked(asked, field.name)]
        elif (name := _name(asked, field.name)) is not None:
            values[field.name] = name
        elif field.default is MISSING:
            values[field.name] = _empty(field, hints[field.name])
    return values


def _asked(asked: Any, field: str) -> list[Any]:
    return [one for source in _ASKED_IN.get(field, ()) for one in getattr(asked, source, None) or ()]


def _name(asked: Any, field: str) -> Any:
    if field not in _NAMED_BY:
        return None
    if not isinstance(asked, SimpleNamespace):
        return asked
    return next((getattr(asked, source) for source in _NAMED_BY[field] if hasattr(asked, source)), None)


def _element(hint: Any) -> Any:
    """The schema of an array's entries; None if it is no array of those."""
    for argument in (hint, *get_args(hint)):
        if get_origin(argument) is tuple:
            entry = get_args(argument)[0]
            return entry if hasattr(entry, "__flexible__") else None
    return None


def _empty(field: "Field[Any]", hint: Any) -> Any:
    if any(get_origin(argument) is tuple for argument in (hint, *get_args(hint))):
        return []
    kafka_type = field.metadata.get("kafka_type", "")
    if kafka_type in _NULLABLE and type(None) in get_args(hint):
        return None
    return _EMPTY.get(kafka_type, _NO_SESSION.get(field.name, _NOTHING))


def _retold(schema: type[Any], read: SimpleNamespace, error: ErrorCode) -> dict[str, Any]:
    hints = get_type_hints(schema)
    values: dict[str, Any] = {}
    for field in fields(schema):
        value = getattr(read, field.name)
        if "tag" in field.metadata and (value is None or value == field.default):
            continue
        if field.metadata.get("kafka_type") == "error_code":
            values[field.name] = error
        elif isinstance(value, SimpleNamespace):
            hint = hints[field.name]
            schema_of_it = next((one for one in get_args(hint) if one is not type(None)), hint)
            values[field.name] = _retold(schema_of_it, value, error)
        elif value is not None and (element := _element(hints[field.name])) is not None:
            values[field.name] = [_retold(element, one, error) for one in value]
        else:
            values[field.name] = value
    return values
