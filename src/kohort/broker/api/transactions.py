"""What the APIs of transactions share."""

from kohort.errors import ErrorCode


def fenced_as_told(error: ErrorCode, *, is_known: bool) -> ErrorCode:
    """Newer versions of these APIs call a producer that was replaced PRODUCER_FENCED (KIP-588)."""
    return ErrorCode.PRODUCER_FENCED if is_known and error is ErrorCode.INVALID_PRODUCER_EPOCH else error
