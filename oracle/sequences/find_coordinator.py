"""FindCoordinator."""

from oracle.apis import Api
from oracle.sequences import for_versions
from oracle.talk import Talk


@for_versions(0, 1, 2, 3)
def find_coordinator(talk: Talk, version: int) -> None:
    caller = talk.client()
    kinds = (0, 1) if version else (None,)
    for kind in kinds:
        values = {} if kind is None else {"key_type": kind}
        caller.ask(Api.FIND_COORDINATOR, version, key=talk.group, **values)
        caller.ask(Api.FIND_COORDINATOR, version, key="", **values)
        caller.ask(Api.FIND_COORDINATOR, version, key="größe", **values)


@for_versions(1, 2, 3)
def find_coordinator_of_an_unknown_kind(talk: Talk, version: int) -> None:
    talk.client().ask(Api.FIND_COORDINATOR, version, key=talk.group, key_type=2)
    talk.client().ask(Api.FIND_COORDINATOR, version, key=talk.group, key_type=-1)
