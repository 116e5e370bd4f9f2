"""Three hours of the shop, scene by scene. What is told here is what the tables and the report must find."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from kohort.demo.clients import SESSION_MS
from kohort.demo.shop import RETENTION_MINUTES, SLOW, Shop, StoryFailed

SPAN_MINUTES = 200
"""The story is a little shorter than that: it ends in the past, but not so long ago that all seem to have stopped."""
STORM_ROUNDS = 15
_ABANDONED = "nightly-export"
_EXPIRED_BY = 95
"""Minutes from the beginning: the session, the retention and the time between two looks of the broker are over."""


@dataclass(frozen=True, slots=True)
class Scene:
    """A sentence, and what then happens."""

    sentence: str
    play: Callable[[Shop], Awaitable[None]]


async def _everybody_at_work(shop: Shop) -> None:
    static = [shop.reader("inventory", f"shelf-{number}", is_static=True) for number in (1, 2)]
    await shop.open(
        [
            *(shop.reader("checkout", f"checkout-{number}") for number in (1, 2, 3)),
            *(shop.reader("billing", f"worker-{number}") for number in (1, 2, 7)),
            *static,
            shop.reader(SLOW, "indexer-1"),
            shop.reader(_ABANDONED, "export-1"),
        ]
    )
    await shop.minutes(10)


async def _one_is_abandoned(shop: Shop) -> None:
    (lost,) = shop.of(_ABANDONED)
    await shop.lose(lost)
    await shop.minutes(25)
    state = shop.broker.groups()[_ABANDONED].state
    if state != "Empty":
        raise StoryFailed(f"{_ABANDONED} is {state}, although its only member was silent for 25 minutes")


async def _more_orders(shop: Shop) -> None:
    shop.pace *= 2
    await shop.minutes(20)


async def _offsets_expire(shop: Shop) -> None:
    while _ABANDONED in shop.broker.groups():
        if shop.minutes_past == _EXPIRED_BY:
            raise StoryFailed(f"{_ABANDONED} did not expire")
        await shop.minutes(1)
    shop.tell(f"the broker has looked, and has written tombstones for {_ABANDONED} and its offsets")
    await shop.minutes(_EXPIRED_BY - shop.minutes_past)


async def _an_abort(shop: Shop) -> None:
    await shop.ledger.book(shop.ends, "abort")
    await shop.minutes(15)


async def _the_storm(shop: Shop) -> None:
    restless = next(reader for reader in shop.of("billing") if reader.name == "worker-7")
    for _ in range(STORM_ROUNDS):
        await shop.remove(restless)
        await shop.minutes(2)
        restless = shop.reader("billing", "worker-7")
        await shop.add(restless)
        await shop.minutes(2)
    generation = shop.broker.groups()["billing"].generation
    shop.tell(f"worker-7 has been restarted {STORM_ROUNDS} times: billing is at generation {generation}")


async def _static_restarts(shop: Shop) -> None:
    before = shop.broker.groups()["inventory"].generation
    for reader in shop.of("inventory"):
        await reader.restart()
        await shop.minutes(5)
    after = shop.broker.groups()["inventory"].generation
    shop.tell(f"inventory is at generation {after}, as before: its members have names, nobody had to rebalance")
    if before != after:
        raise StoryFailed(f"inventory went from generation {before} to {after}, although its members are static")
    await shop.minutes(15)


async def _an_open_transaction(shop: Shop) -> None:
    shop.keeps_books = False
    await shop.ledger.book(shop.ends, "none")
    await shop.minutes(3)


SCENES = (
    Scene("ten orders a minute in each of 6 partitions; six groups read them, all keep up", _everybody_at_work),
    Scene(
        f"{_ABANDONED} loses its only consumer, without a goodbye: its session ends in {SESSION_MS // 60_000} minutes",
        _one_is_abandoned,
    ),
    Scene(f"twenty orders a minute: {SLOW} manages ten, and falls behind from now on", _more_orders),
    Scene(
        f"{_ABANDONED} has been empty for a while: its offsets are kept for {RETENTION_MINUTES} minutes",
        _offsets_expire,
    ),
    Scene("ledger aborts a transaction, reads the same orders again and commits them", _an_abort),
    Scene("billing's worker-7 leaves, comes back, leaves: everybody in the group stops each time", _the_storm),
    Scene("inventory is deployed: both of its static members are restarted, one after the other", _static_restarts),
    Scene("ledger commits offsets in a transaction, and does not end it", _an_open_transaction),
)


async def play(shop: Shop) -> None:
    """The whole story."""
    for scene in SCENES:
        shop.tell(scene.sentence)
        await scene.play(shop)
