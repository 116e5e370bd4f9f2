"""Where a test says how many disks it has tried; the reports carry the number, also from process to process."""

import pytest

PROPERTY = "crash images"


class Tally:
    def __init__(self, node: pytest.Item) -> None:
        self._node = node
        self._number = 0

    def count(self, number: int) -> None:
        self._number += number
        others = [(name, value) for name, value in self._node.user_properties if name != PROPERTY]
        self._node.user_properties = [*others, (PROPERTY, self._number)]
