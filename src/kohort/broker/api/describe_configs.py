"""DescribeConfigs (32): the settings of topics and of this broker.

1 where a value comes from, and its synonyms (KIP-226) · 2 as before · 3 kinds and documentation (KIP-569) · 4 flexible
"""

from typing import TYPE_CHECKING, Any

from kohort.broker.api import api
from kohort.broker.api.config_entries import broker_entries, cluster_entries, topic_entries
from kohort.broker.api.config_resources import ResourceType, check_broker, check_permission, existing_topic
from kohort.broker.api.refusal import refusal_of
from kohort.broker.security.permission import DESCRIBE_CLUSTER_CONFIGS, DESCRIBE_TOPIC_CONFIGS
from kohort.errors import ClientError, ErrorCode

if TYPE_CHECKING:
    from kohort.broker.broker import Broker
    from kohort.broker.call import Call


@api(32, 1, 4, permissions=(DESCRIBE_TOPIC_CONFIGS, DESCRIBE_CLUSTER_CONFIGS))
def describe_configs(broker: "Broker", call: "Call") -> None:
    request = call.request
    asked = {(resource.resource_type, resource.resource_name): resource for resource in request.resources}
    results = []
    for (resource_type, name), resource in asked.items():
        told: dict[str, Any] = {
            "error_code": ErrorCode.NONE,
            "error_message": None,
            "resource_type": resource_type,
            "resource_name": name,
            "configs": [],
        }
        try:
            of_topics, of_cluster = DESCRIBE_TOPIC_CONFIGS, DESCRIBE_CLUSTER_CONFIGS
            check_permission(call, resource, of_topics=of_topics, of_cluster=of_cluster)
            entries = _entries(broker, resource)
        except ClientError as error:
            told |= refusal_of(error)
        else:
            told["configs"] = [
                _shown(entry, request)
                for entry in entries
                if not resource.configuration_keys or entry["name"] in resource.configuration_keys
            ]
        results.append(told)
    call.answer({"results": results})


def _entries(broker: "Broker", resource: Any) -> list[dict[str, Any]]:
    if resource.resource_type == ResourceType.BROKER:
        if not resource.resource_name:
            return cluster_entries(broker)
        check_broker(broker, resource.resource_name)
        return broker_entries(broker)
    topic = existing_topic(broker, resource)
    return topic_entries(broker, topic.name, topic.settings)


def _shown(entry: dict[str, Any], request: Any) -> dict[str, Any]:
    """Synonyms and documentation are for those who ask."""
    shown = dict(entry)
    if not request.include_synonyms:
        shown["synonyms"] = []
    if not getattr(request, "include_documentation", False):
        shown["documentation"] = None
    return shown
