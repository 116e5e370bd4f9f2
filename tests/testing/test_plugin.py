"""The pytest plug-in, in runs of pytest of its own."""

import subprocess
import sys

import pytest

pytest_plugins = ("pytester",)


def test_the_plugin_imports_nothing_that_a_run_without_a_broker_does_not_need() -> None:
    program = """
import sys
import pytest
before = set(sys.modules)
import kohort.testing.plugin
print(*sorted(set(sys.modules) - before))
"""
    told = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60)
    assert told.stdout.split() == ["kohort", "kohort.testing", "kohort.testing.plugin"]


def test_fixtures_are_there_without_being_asked_for(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        test_broker="""
        import socket
        import pytest

        @pytest.mark.parametrize("number", range(2))
        def test_each_test_has_a_broker_of_its_own(kohort_broker, number):
            host, port = kohort_broker.bootstrap_servers.split(":")
            socket.create_connection((host, int(port))).close()
            assert not kohort_broker.clock.is_virtual
            kohort_broker.create_topic("orders")
        """,
        test_clock="""
        def test_a_clock(kohort_broker, kohort_cluster_clock):
            assert kohort_cluster_clock is kohort_broker.clock
            before = kohort_cluster_clock.now_ms()
            kohort_cluster_clock.advance(1_000)
            assert kohort_cluster_clock.now_ms() == before + 1_000

        def test_a_clock_alone(kohort_cluster_clock):
            assert kohort_cluster_clock.is_virtual
        """,
        test_settings="""
        import pytest
        from kohort.testing import NotPossible

        pytestmark = pytest.mark.kohort_settings({"offsets.topic.num.partitions": 2})

        def test_two(kohort_broker):
            kohort_broker.move_coordinator(1)
            with pytest.raises(NotPossible):
                kohort_broker.move_coordinator(2)

        @pytest.mark.kohort_settings({"offsets.topic.num.partitions": 1})
        def test_the_nearest_mark_counts(kohort_broker):
            with pytest.raises(NotPossible):
                kohort_broker.move_coordinator(1)
        """,
    )
    pytester.runpytest_subprocess("-W", "error", "--strict-markers").assert_outcomes(passed=6)


def test_a_broker_that_breaks_down_fails_its_test(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        import socket

        def test_a_broker(kohort_broker):
            kohort_broker.drop_next("ApiVersions", when=lambda request: 1 / 0)
            with socket.create_connection((kohort_broker.host, kohort_broker.port)) as connection:
                connection.sendall(bytes.fromhex("0000000a 0012 0000 00000001 ffff"))
                assert connection.recv(1) == b""
        """
    )
    result = pytester.runpytest_subprocess()
    result.assert_outcomes(passed=1, errors=1)
    result.stdout.fnmatch_lines(["*BrokerFailed*division by zero*"])
