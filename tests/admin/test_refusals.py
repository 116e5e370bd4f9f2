"""Error codes in words, and names in messages."""

from kohort.admin.refusals import in_words, named
from kohort.errors import ErrorCode


def test_every_code_of_kafka_has_its_name() -> None:
    assert in_words(ErrorCode.NON_EMPTY_GROUP) == "the group is not empty (NON_EMPTY_GROUP)"
    assert in_words(30) == "GROUP_AUTHORIZATION_FAILED"
    assert in_words(12345) == "error 12345"
    for code in ErrorCode:
        assert code.name in in_words(code) or code is ErrorCode.UNKNOWN_SERVER_ERROR


def test_names_are_short_and_inert() -> None:
    assert named("billing") == "'billing'"
    assert named("\x1b[31mred\u202e\n") == r"'\x1b[31mred\u202e\n'"
    assert len(named("x" * 32_000)) == 80
