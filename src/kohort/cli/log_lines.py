"""What a broker tells on stderr: one line for each event, whatever clients call themselves."""

import logging

from kohort.cli.output import one_line

_LONGEST = 2_000


class OneLine(logging.Formatter):
    """Lines that no name can break, move a terminal by, or make endless."""

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802  # it is the library's name
        line = one_line(super().formatMessage(record))
        return line if len(line) <= _LONGEST else f"{line[: _LONGEST // 2]}…{line[-_LONGEST // 2 :]}"


def log_to_stderr(level: int) -> None:
    handler = logging.StreamHandler()
    handler.setFormatter(OneLine(logging.BASIC_FORMAT))
    logging.basicConfig(level=level, handlers=[handler])
