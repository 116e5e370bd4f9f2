"""Refusals of administrative requests: an error code with a sentence for people."""

import logging
from typing import Any

from kohort.broker.security.permission import Permission
from kohort.errors import ClientError, ErrorCode, StorageFailed

logger = logging.getLogger(__name__)


class Refused(ClientError):
    """A request, or a part of one, that is not right."""

    def __init__(self, code: ErrorCode, message: str) -> None:
        super().__init__(message)
        self.code = code


def not_allowed(permission: Permission) -> Refused:
    """What somebody hears who may not do something."""
    what = f"{permission.operation.name} on {permission.resource_type.name}"
    return Refused(permission.refusal, f"this needs permission: {what}")


def refusal_of(error: ClientError | StorageFailed) -> dict[str, Any]:
    """What an answer tells of it. Where our files are is nobody's business but that of whoever reads our log."""
    if isinstance(error, StorageFailed):
        logger.error("a request could not be carried out: %s", error)
        return {"error_code": error.code, "error_message": "the broker's disk has failed"}
    return {"error_code": error.code, "error_message": str(error)}
