"""DeleteAcls (31): all entries that fit filters go (KIP-140).

1 prefixes, and all that fit a name (KIP-290) · 2 flexible · 3 users as resources (KIP-373)
"""

from typing import TYPE_CHECKING, Any

from kohort.broker.api import api
from kohort.broker.api.acls import SECURITY_DISABLED, filter_of, told_entry, told_pattern
from kohort.broker.api.refusal import not_allowed, refusal_of
from kohort.broker.security.acl import Acl, BadAcl
from kohort.broker.security.permission import ALTER_CLUSTER
from kohort.errors import ErrorCode

if TYPE_CHECKING:
    from kohort.broker.broker import Broker
    from kohort.broker.call import Call

_MOST_OPEN_FILTERS = 100
"""Each looks at all entries there are."""


@api(31, 1, 3, permissions=(ALTER_CLUSTER,))
def delete_acls(_: "Broker", call: "Call") -> None:
    filters = call.request.filters
    if call.authorizer is None:
        call.answer({"filter_results": [_refused(SECURITY_DISABLED)] * len(filters)})
        return
    if not call.may(ALTER_CLUSTER):
        call.answer({"filter_results": [_refused(not_allowed(ALTER_CLUSTER))] * len(filters)})
        return
    found: list[list[Acl] | BadAcl] = []
    going: dict[Acl, None] = {}
    left = _MOST_OPEN_FILTERS
    for asked in filters:
        try:
            wanted = filter_of(asked)
            left -= wanted.only is None
            if left < 0:
                raise BadAcl(f"more than {_MOST_OPEN_FILTERS} filters that may fit several entries")
            fitting = [acl for acl in call.authorizer.acls(wanted) if acl not in going]
            found.append(fitting)
            going |= dict.fromkeys(fitting)
        except BadAcl as error:
            found.append(error)

    def respond(error: ErrorCode) -> None:
        results = [_refused(one) if isinstance(one, BadAcl) else _told(one, error) for one in found]
        call.answer({"filter_results": results})

    call.authorizer.delete(going, respond)


def _refused(error: Any) -> dict[str, Any]:
    return {**refusal_of(error), "matching_acls": ()}


def _told(acls: list[Acl], error: ErrorCode) -> dict[str, Any]:
    """Each entry is told once, by the first filter that it fits."""
    of_each = {"error_code": error, "error_message": None}
    matching = [{**of_each, **told_pattern(acl), **told_entry(acl)} for acl in acls]
    return {"error_code": ErrorCode.NONE, "error_message": None, "matching_acls": matching}
