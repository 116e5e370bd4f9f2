"""What a broker logs: one line an event, whatever clients call themselves."""

import logging

import pytest

from kohort.cli.log_lines import OneLine

HOSTILE = ["two\nlines", "\x1b[31mred\x1b]0;title\x07", "right\u202eleft", "nul\0", "\u2028", "x" * 32_767]


@pytest.mark.parametrize("name", HOSTILE, ids=range(len(HOSTILE)))
def test_a_name_can_neither_break_a_line_nor_move_a_terminal(name: str) -> None:
    record = logging.LogRecord("kohort", logging.INFO, "", 0, "the transaction of %s took too long", (name,), None)
    line = OneLine(logging.BASIC_FORMAT).format(record)
    assert line.isprintable()
    assert line.startswith("INFO:kohort:the transaction of ")
    assert line.endswith(" took too long")
    assert len(line) <= 2_001


def test_a_traceback_keeps_its_lines() -> None:
    try:
        raise ValueError("wrong")
    except ValueError as error:
        info = (type(error), error, error.__traceback__)
    record = logging.LogRecord("kohort", logging.ERROR, "", 0, "failed", (), info)
    assert OneLine(logging.BASIC_FORMAT).format(record).splitlines()[-1] == "ValueError: wrong"
