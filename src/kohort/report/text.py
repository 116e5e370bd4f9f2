"""Strings of the log, kept once each; values of a page refer to them by number.

They are data and nothing else: no text that a client has chosen is ever part of the markup or of the script.
"""

import json
from typing import Any

from kohort.report.limits import LONG_TEXT, LONG_TEXTS


class Strings:
    """The strings that a page needs, in the order in which they were first met."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}
        self._kept: list[str] = []
        self._room = LONG_TEXTS

    def number(self, text: str | None) -> int | None:
        """Where a string stands."""
        if text is None:
            return None
        found = self._numbers.get(text)
        if found is None:
            found = self._numbers[text] = len(self._kept)
            self._kept.append(self._fitting(text))
        return found

    def all(self) -> list[str]:
        return self._kept

    def _fitting(self, text: str) -> str:
        if len(text) <= LONG_TEXT:
            return text
        if len(text) <= self._room:
            self._room -= len(text)
            return text
        return f"{text[:LONG_TEXT]}… ({len(text):,} characters)"


def inert_json(value: Any) -> str:
    """JSON that no parser of HTML or JavaScript takes for anything else."""
    told = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    # Lone surrogates cannot be written as UTF-8.
    told = told.encode("utf-8", "backslashreplace").decode("utf-8") if not _is_encodable(told) else told
    for character in "<>&\u2028\u2029":
        told = told.replace(character, f"\\u{ord(character):04x}")
    return told


def _is_encodable(text: str) -> bool:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True
