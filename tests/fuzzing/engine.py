"""A process that fuzzes one target: atheris brings libFuzzer and tells it which branches of our code were taken.

`python -m tests.fuzzing.engine TARGET` takes the options of libFuzzer behind the target; it is `__main__.py` that
calls it. What numba compiles must stay as it is, so no branches are told of there.
"""

import logging
import sys

import atheris

_OURS = ["kohort"]
_COMPILED = [
    "kohort.records.machine",
    "kohort.records.kernels",
    "kohort.records.fold_kernels",
    "kohort.broker.compiled_commits",
]


def main() -> None:
    name, *options = sys.argv[1:]
    with atheris.instrument_imports(include=_OURS, exclude=_COMPILED):
        from tests.fuzzing.targets import TARGETS
    logging.disable(logging.CRITICAL)
    atheris.Setup([sys.argv[0], *options], TARGETS[name].run)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
