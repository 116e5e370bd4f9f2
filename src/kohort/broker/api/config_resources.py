"""What settings belong to, as the requests about settings name it: a topic, or this broker."""

from collections import Counter
from collections.abc import Callable, Mapping
from enum import IntEnum
from typing import TYPE_CHECKING, Any

from kohort.broker.api.refusal import Refused, not_allowed, refusal_of
from kohort.broker.security.permission import ALTER_CLUSTER_CONFIGS, ALTER_TOPIC_CONFIGS, Permission
from kohort.broker.setting_kinds import BadSetting, Kind
from kohort.broker.settings import dynamic_kind
from kohort.broker.settings_file import Changes
from kohort.broker.topic_settings import setting_named
from kohort.errors import ClientError, ErrorCode, StorageFailed
from kohort.log.names import is_topic_name

if TYPE_CHECKING:
    from kohort.broker.broker import Broker
    from kohort.broker.call import Call
    from kohort.broker.topics import Topic


class ResourceType(IntEnum):
    """Kafka's numbers."""

    TOPIC = 2
    BROKER = 4


SettingsAfter = Callable[[Mapping[str, str], list[Any], Callable[[str], Kind]], dict[str, str]]
"""What settings become by a request: what they are, what is asked for, and what kind each of them is of."""


def change_settings(broker: "Broker", call: "Call", settings_after: SettingsAfter) -> None:
    """Answer a request that changes settings."""
    resources, validate_only = call.request.resources, call.request.validate_only
    named = Counter((resource.resource_type, resource.resource_name) for resource in resources)
    answers = {}
    for resource in resources:
        key = (resource.resource_type, resource.resource_name)
        told: dict[str, Any] = {
            "error_code": ErrorCode.NONE,
            "error_message": None,
            "resource_type": resource.resource_type,
            "resource_name": resource.resource_name,
        }
        try:
            if named[key] > 1:
                raise Refused(ErrorCode.INVALID_REQUEST, "a resource stands in the request more than once")
            check_permission(call, resource, of_topics=ALTER_TOPIC_CONFIGS, of_cluster=ALTER_CLUSTER_CONFIGS)
            _check_names(resource.configs)
            if resource.resource_type == ResourceType.BROKER:
                _change_broker(broker, resource, settings_after, validate_only=validate_only)
            else:
                _change_topic(broker, resource, settings_after, validate_only=validate_only)
        except (ClientError, StorageFailed) as error:
            told |= refusal_of(error)
        answers[key] = told
    call.answer({"responses": list(answers.values())})


def _change_topic(broker: "Broker", resource: Any, settings_after: SettingsAfter, *, validate_only: bool) -> None:
    topic = existing_topic(broker, resource)
    settings = settings_after(topic.settings, resource.configs, lambda name: setting_named(name).kind)
    broker.topics.check_config(topic.name, settings)
    if not validate_only:
        broker.topics.change_settings(topic, settings)


def _change_broker(broker: "Broker", resource: Any, settings_after: SettingsAfter, *, validate_only: bool) -> None:
    """An empty name means all brokers. What is wrong with a setting of a broker is an invalid request to Kafka."""
    before = Changes(broker.config.changed, broker.config.changed_for_all)
    try:
        if resource.resource_name:
            check_broker(broker, resource.resource_name)
            after = before._replace(own=settings_after(before.own, resource.configs, dynamic_kind))
        else:
            after = before._replace(for_all=settings_after(before.for_all, resource.configs, dynamic_kind))
        broker.change_settings(after, validate_only=validate_only)
    except BadSetting as error:
        raise Refused(ErrorCode.INVALID_REQUEST, str(error)) from error


def check_permission(call: "Call", resource: Any, *, of_topics: Permission, of_cluster: Permission) -> None:
    """`Refused` if who asks may not do this with the settings of a topic or a broker."""
    if resource.resource_type == ResourceType.TOPIC and not call.may(of_topics, resource.resource_name):
        raise not_allowed(of_topics)
    if resource.resource_type == ResourceType.BROKER and not call.may(of_cluster):
        raise not_allowed(of_cluster)


def existing_topic(broker: "Broker", resource: Any) -> "Topic":
    """The topic that a resource names."""
    if resource.resource_type != ResourceType.TOPIC:
        raise Refused(ErrorCode.INVALID_REQUEST, f"resources of type {resource.resource_type} have no settings here")
    name = resource.resource_name
    if not is_topic_name(name):
        raise Refused(ErrorCode.INVALID_TOPIC, f"{name!r} is no name for a topic")
    topic = broker.topics.get(name)
    if topic is None:
        raise Refused(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"there is no topic '{name}'")
    return topic


def check_broker(broker: "Broker", name: str) -> None:
    """Only this broker can be asked for, by its id."""
    if name != str(broker.config.broker_id):
        raise Refused(ErrorCode.INVALID_REQUEST, f"this is broker {broker.config.broker_id}, not {name!r}")


def _check_names(configs: list[Any]) -> None:
    twice = [name for name, count in Counter(entry.name for entry in configs).items() if count > 1]
    if twice:
        raise Refused(ErrorCode.INVALID_REQUEST, f"settings that are named twice: {', '.join(twice)}")
