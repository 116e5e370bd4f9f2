"""DescribeCluster (60): the brokers and who controls them (KIP-700). One broker is all of it.

0 · 1 which kind of endpoint is meant (KIP-919) · 2 brokers that are shut out (KIP-1073): there are none
"""

from typing import TYPE_CHECKING

from kohort.broker.api import api
from kohort.broker.api.operations import NOT_ASKED, cluster_operations
from kohort.broker.security.permission import ALL_OF_CLUSTER
from kohort.errors import ErrorCode

if TYPE_CHECKING:
    from kohort.broker.broker import Broker
    from kohort.broker.call import Call

_BROKERS, _CONTROLLERS = 1, 2


@api(60, 0, 2, tells=ALL_OF_CLUSTER)
def describe_cluster(broker: "Broker", call: "Call") -> None:
    request = call.request
    wanted = getattr(request, "endpoint_type", _BROKERS)
    if wanted != _BROKERS:
        is_known = wanted == _CONTROLLERS
        call.answer(
            {
                "error_code": ErrorCode.MISMATCHED_ENDPOINT_TYPE if is_known else ErrorCode.UNSUPPORTED_ENDPOINT_TYPE,
                "error_message": f"this is an endpoint of brokers, not of type {wanted}",
                "endpoint_type": _BROKERS,
                "cluster_id": "",
                "controller_id": -1,
                "brokers": [],
                "cluster_authorized_operations": NOT_ASKED,
            }
        )
        return
    me = broker.config.broker_id
    node = {**broker.node_for(call), "broker_id": me, "is_fenced": False}
    call.answer(
        {
            "error_code": ErrorCode.NONE,
            "error_message": None,
            "endpoint_type": _BROKERS,
            "cluster_id": broker.config.cluster_id,
            "controller_id": me,
            "brokers": [node],
            "cluster_authorized_operations": (
                cluster_operations(call) if request.include_cluster_authorized_operations else NOT_ASKED
            ),
        }
    )
