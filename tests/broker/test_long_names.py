"""Names as long as Kafka's strings may be."""

from tests.broker.group_clients import find_coordinator
from tests.broker.running import running

DESCRIBE_GROUPS, GROUP_ID_NOT_FOUND = 15, 69


def test_describe_groups_v6_of_a_missing_group_whose_name_has_32767_bytes_is_answered() -> None:
    with running() as broker, broker.client() as client:
        for name in ("x" * 32_767, "ü" * 16_383, "missing"):
            find_coordinator(client, name)
            (group,) = client.ask(DESCRIBE_GROUPS, 6, groups=[name]).groups
            assert (group.error_code, group.group_id) == (GROUP_ID_NOT_FOUND, name)
            assert group.error_message.startswith(f"Group {name[:100]}")
            assert group.error_message.endswith(f"{name[-100:]} not found.")
            assert len(group.error_message.encode()) <= 32_767
