"""What clusters say no with, in words."""

from kohort.errors import ErrorCode

_WIDEST_NAME = 80

_WORDS = {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: "there is no such topic partition",
    ErrorCode.OFFSET_METADATA_TOO_LARGE: "the metadata is larger than the cluster allows",
    ErrorCode.INVALID_GROUP_ID: "the cluster takes no group of that name",
    ErrorCode.UNKNOWN_MEMBER_ID: "the group has members",
    ErrorCode.ILLEGAL_GENERATION: "the group has members",
    ErrorCode.REBALANCE_IN_PROGRESS: "the group has members, and is rebalancing",
    ErrorCode.NON_EMPTY_GROUP: "the group is not empty",
    ErrorCode.GROUP_ID_NOT_FOUND: "the group does not exist",
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED: "this needs permission for the whole cluster",
    ErrorCode.SECURITY_DISABLED: "the cluster has no authorizer",
    ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC: "the group is subscribed to the topic",
}


def in_words(code: int) -> str:
    """An error code as a phrase, with Kafka's name for it."""
    from kio.schema.errors import ErrorCode as Known

    try:
        name = Known(code).name.upper()
    except ValueError:
        return f"error {code}"
    words = _WORDS.get(ErrorCode(code)) if code in ErrorCode.__members__.values() else None
    return f"{words} ({name})" if words else name


def named(name: str) -> str:
    """A name as a message has it: in quotes, on one line, with nothing that moves a terminal, and not endless."""
    text = repr(name)
    return text if len(text) <= _WIDEST_NAME else f"{text[: _WIDEST_NAME - 21]}…{text[-20:]}"
