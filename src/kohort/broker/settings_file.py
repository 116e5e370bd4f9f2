"""`settings.json`: what was said about the broker's settings while it ran.

It is replaced as a whole, so a crash leaves the old content or the new. A file that is not what we write is refused:
whoever changed it by hand is told where, and nothing is guessed.
"""

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

from kohort.errors import CorruptLog
from kohort.log.documents import Documents

NAME = "settings.json"

_VERSION = 1


class Changes(NamedTuple):
    """What was said for this broker, and for all brokers."""

    own: Mapping[str, str]
    for_all: Mapping[str, str]


class SettingsFile:
    """Where changes are written down. Those of other brokers that had this directory stay."""

    def __init__(self, documents: Documents, broker_id: int) -> None:
        self._documents = documents
        self._broker = str(broker_id)
        self.path = documents.place(NAME)

    def read(self) -> Changes:
        """Nothing if there is no file. `CorruptLog` if it is not one that we wrote."""
        told = self._read()
        return Changes(told["brokers"].get(self._broker, {}), told["all"])

    def write(self, changes: Changes) -> None:
        """Durable when it returns."""
        brokers = {**self._read()["brokers"], self._broker: dict(changes.own)}
        told = {"version": _VERSION, "all": dict(changes.for_all), "brokers": brokers}
        self._documents.write(NAME, json.dumps(told, indent=1).encode())

    def _read(self) -> dict[str, Any]:
        data = self._documents.read(NAME)
        if data is None:
            return {"all": {}, "brokers": {}}
        try:
            told = json.loads(data)
        except (ValueError, RecursionError) as error:
            raise CorruptLog(f"it is not JSON: {error}", path=self.path) from error
        is_ours = isinstance(told, dict) and told.get("version") == _VERSION and isinstance(told.get("brokers"), dict)
        if not is_ours or not all(map(_are_settings, (told.get("all"), *told["brokers"].values()))):
            raise CorruptLog(f"it does not tell of settings as version {_VERSION} does", path=self.path)
        return {"all": told["all"], "brokers": told["brokers"]}


def _are_settings(told: Any) -> bool:
    return isinstance(told, dict) and all(isinstance(text, str) for text in told.values())
