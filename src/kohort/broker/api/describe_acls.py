"""DescribeAcls (29): entries of access control lists (KIP-140).

1 prefixes, and all that fit a name (KIP-290) · 2 flexible · 3 users as resources (KIP-373)
"""

from typing import TYPE_CHECKING, Any

from kohort.broker.api import api
from kohort.broker.api.acls import SECURITY_DISABLED, filter_of, told_entry, told_pattern
from kohort.broker.api.refusal import not_allowed, refusal_of
from kohort.broker.security.acl import BadAcl
from kohort.broker.security.permission import DESCRIBE_CLUSTER
from kohort.errors import ErrorCode

if TYPE_CHECKING:
    from kohort.broker.broker import Broker
    from kohort.broker.call import Call


@api(29, 1, 3, permissions=(DESCRIBE_CLUSTER,))
def describe_acls(_: "Broker", call: "Call") -> None:
    if call.authorizer is None:
        call.answer({**refusal_of(SECURITY_DISABLED), "resources": ()})
        return
    if not call.may(DESCRIBE_CLUSTER):
        call.answer({**refusal_of(not_allowed(DESCRIBE_CLUSTER)), "resources": ()})
        return
    try:
        found = call.authorizer.acls(filter_of(call.request))
    except BadAcl as error:
        call.answer({**refusal_of(error), "resources": ()})
        return
    resources: dict[Any, dict[str, Any]] = {}
    for acl in found:
        resource = resources.setdefault(acl[:3], {**told_pattern(acl), "acls": []})
        resource["acls"].append(told_entry(acl))
    call.answer({"error_code": ErrorCode.NONE, "error_message": None, "resources": list(resources.values())})
