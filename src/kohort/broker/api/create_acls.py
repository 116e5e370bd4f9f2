"""CreateAcls (30): new entries of access control lists (KIP-140). Those that there are already are no error.

1 prefixes (KIP-290) · 2 flexible · 3 users as resources (KIP-373)
"""

from typing import TYPE_CHECKING, Any

from kohort.broker.api import api
from kohort.broker.api.acls import SECURITY_DISABLED, acl_of
from kohort.broker.api.refusal import Refused, not_allowed, refusal_of
from kohort.broker.security.acl import Acl
from kohort.broker.security.authorizer import MOST_ACLS
from kohort.broker.security.permission import ALTER_CLUSTER
from kohort.errors import ClientError, ErrorCode

if TYPE_CHECKING:
    from kohort.broker.broker import Broker
    from kohort.broker.call import Call

_MADE = {"error_code": ErrorCode.NONE, "error_message": None}


@api(30, 1, 3, permissions=(ALTER_CLUSTER,))
def create_acls(_: "Broker", call: "Call") -> None:
    creations = call.request.creations
    if call.authorizer is None:
        call.answer({"results": [refusal_of(SECURITY_DISABLED)] * len(creations)})
        return
    if not call.may(ALTER_CLUSTER):
        call.answer({"results": [refusal_of(not_allowed(ALTER_CLUSTER))] * len(creations)})
        return
    results: list[dict[str, Any]] = []
    new: dict[Acl, None] = {}
    for asked in creations:
        try:
            acl = acl_of(asked)
            if acl not in call.authorizer and acl not in new:
                if not call.authorizer.has_room(len(new) + 1):
                    raise Refused(ErrorCode.POLICY_VIOLATION, f"there can be no more than {MOST_ACLS} entries")
                new[acl] = None
            results.append(_MADE)
        except ClientError as error:
            results.append(refusal_of(error))

    def respond(error: ErrorCode) -> None:
        failed = {"error_code": error, "error_message": None}
        call.answer({"results": [failed if error and told is _MADE else told for told in results]})

    call.authorizer.create(new, respond)
