"""The report in sentences. Each has a place in the page that shows what it says."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from kohort.report.groups import DAY_S, REMOVED, Groups, worst
from kohort.report.storms import Storm
from kohort.report.text import Strings

_NAMED = 3
_SHOWN_STORMS = 3
_CAUSES = {
    "member_joined": "members joined",
    "member_left": "members left",
    "members_changed": "members came and went",
    "members_restarted": "members restarted",
    "subscription_changed": "subscriptions changed",
    "protocol_changed": "the assignor changed",
    "cooperative_handover": "partitions were handed over",
    "partitions_changed": "topics got other partitions",
    "same_members": "members joined again",
}

_WHERE = {"rewind": "back", "skip": "ahead", "reset_to_earliest": "to the start", "reset_to_latest": "to the end"}

Part = str | dict[str, int]
"""Plain text of ours, or the number of a string of the log."""


@dataclass(frozen=True, slots=True)
class Findings:
    """What the sentences are about."""

    groups: Groups
    storms: Sequence[Storm]
    at: int
    retention_minutes: int
    read: int
    health: dict[str, Any]
    transactions: dict[str, Any]
    jumps: dict[str, Any]
    damage: dict[str, Any]


def sentences(found: Findings, strings: Strings) -> list[dict[str, Any]]:
    """`parts`, `to` (a section), `g` (a group to show there, or None), `tone` (bad, warn, good or plain)."""
    writer = _Writer(found, strings)
    return [
        *writer.counts(),
        *writer.status(),
        *writer.rebalances(),
        *writer.lag(),
        *writer.expiry(),
        *writer.loudest(),
        *writer.transactions(),
        *writer.jumps(),
        *writer.damage(),
    ]


class _Writer:
    def __init__(self, found: Findings, strings: Strings) -> None:
        self._found, self._strings = found, strings
        self._rows = found.groups.rows

    def counts(self) -> Iterator[dict[str, Any]]:
        total = self._found.groups.totals["groups"]
        if not total:
            yield _sentence("plain", "groups", "There is no group in this log.")
            return
        states = sorted(self._found.groups.states.items(), key=lambda item: (-item[1], item[0]))
        told = ", ".join(f"{count:,} {state if state != REMOVED else 'removed'}" for state, count in states)
        yield _sentence("plain", "groups", f"{_many(total, 'group')}: {told}.")

    def status(self) -> Iterator[dict[str, Any]]:
        totals = self._found.groups.totals
        for status, tone, said in (
            ("stop", "bad", "stopped: commits have ceased while there is something left to read"),
            ("stall", "bad", "stalled: commits go on, but no further"),
            ("rewind", "warn", "went back and did not catch up since"),
            ("warn", "warn", "fell behind with every commit of late"),
        ):
            count = totals[f"groups_{status}"]
            if count:
                of = [(g, row) for g, row in enumerate(self._rows) if worst(row) == status.upper()]
                of = of or [(g, row) for g, row in enumerate(self._rows) if row[status]]
                of.sort(key=lambda item: -item[1]["lag"])
                yield _sentence(
                    tone, "groups", f"{_many(count, 'group')} {said} (", *self._names(of, count), ").",
                    g=of[0][0] if count == 1 and of else None, filter=status.upper(),
                )  # fmt: skip
        if totals["groups"] and not any(totals[f"groups_{name}"] for name in ("stop", "stall", "rewind", "warn")):
            yield _sentence("good", "groups", "No group has stopped, stalled or fallen behind, by Burrow's rules.")

    def rebalances(self) -> Iterator[dict[str, Any]]:
        storms = self._found.storms[:_SHOWN_STORMS]
        for storm in storms:
            yield _sentence(
                "bad", "timeline", self._string(storm.group),
                f" rebalanced {storm.count:,} times between {self._time(storm.start)} and {self._time(storm.end)}, ",
                *self._because(storm), ".", g=self._number(storm.group),
            )  # fmt: skip
        total = self._found.groups.totals["rebalances"] or 0
        if not storms and total:
            yield _sentence("plain", "raster", f"{_many(total, 'rebalance')} in all, and no group in a storm of them.")
        elif total > sum(storm.count for storm in storms):
            yield _sentence("plain", "raster", f"{_many(total, 'rebalance')} of all groups together.")

    def _because(self, storm: Storm) -> Iterator[Part]:
        if storm.client is not None:
            yield "because "
            yield self._string(storm.client)
            yield f" left {_times(storm.left)} and joined {_times(storm.joined)}"
            return
        told = [f"{_CAUSES.get(cause, cause)} ({count:,})" for cause, count in list(storm.causes.items())[:_NAMED]]
        yield f"because {', '.join(told)}"

    def lag(self) -> Iterator[dict[str, Any]]:
        behind = [(g, row) for g, row in enumerate(self._rows) if row["lag"]]
        if not behind:
            return
        g, row = max(behind, key=lambda item: item[1]["lag"])
        waited = "" if row["lag_seconds"] is None else f"; the oldest of them waits for {_duration(row['lag_seconds'])}"
        bound = " at least" if row["proxies"] else ""
        yield _sentence(
            "warn" if row["lag_seconds"] and row["lag_seconds"] > 3600 else "plain", "lag", self._string(row["group"]),
            f" is furthest behind:{bound} {_many(int(row['lag']), 'message')}{waited}.", g=g,
        )  # fmt: skip
        if lost := int(self._found.groups.totals["lost"] or 0):
            yield _sentence(
                "bad", "groups", f"{_many(lost, 'message')} were deleted before their group had read them.", sort="lost"
            )

    def expiry(self) -> Iterator[dict[str, Any]]:
        soon = [(g, row) for g, row in enumerate(self._rows) if row["expiring"]]
        soon.sort(key=lambda item: (item[1]["expires"], item[1]["group"]))
        if not soon:
            minutes = self._found.retention_minutes
            kept = f"{minutes / 1440:g} days" if minutes >= 1440 else f"{minutes} minutes"
            yield _sentence("good", "expiry", f"No offset expires within 24 h (retention: {kept}).")
            return
        totals = self._found.groups.totals
        offsets, groups = int(totals["expiring"]), totals["groups_expiring"]
        first = soon[0][1]["expires"]
        verb = "expires" if offsets == 1 else "expire"
        when = "at the broker's next look" if first <= self._found.at else f"the first at {self._time(first)}"
        yield _sentence(
            "warn", "expiry", f"{_many(offsets, 'offset')} of {_many(groups, 'group')} {verb} within ",
            f"{DAY_S // 3600} h, {when} (", *self._names(soon, groups), ").",
        )  # fmt: skip

    def loudest(self) -> Iterator[dict[str, Any]]:
        if not self._found.health["loudest"]:
            return
        name, *values = self._found.health["loudest"][0]
        told = dict(zip(self._found.health["columns"], values, strict=True))
        idle = told["idle_commits"] / told["commits"] if told["commits"] else 0
        again = f", {_percent(idle)} of them for what was committed already" if idle >= 0.01 else ""
        yield _sentence(
            "warn" if told["share"] >= 0.5 and self._found.health["groups"] > 1 else "plain", "loudest",
            f"{_percent(told['share'])} of the topic's bytes come from one group, ", {"s": name},
            f" ({_many(told['commits'], 'commit')}{again}).",
        )  # fmt: skip
        if topic := self._found.health["topic"]:
            whole = dict(zip(self._found.health["columns"], topic, strict=True))
            if whole["compaction_debt"]:
                yield _sentence(
                    "plain", "health", f"Compaction would free {_percent(whole['compaction_debt'])} of the "
                    f"{_bytes(whole['bytes'])} of the offsets topic.",
                )  # fmt: skip

    def transactions(self) -> Iterator[dict[str, Any]]:
        yield from self._open_transactions()
        fates = {self._text(fate): count for fate, count in self._found.transactions["fates"]}
        if aborted := fates.get("aborted", 0):
            ended = aborted + fates.get("committed", 0)
            yield _sentence(
                "plain", "transactions", f"{aborted:,} of {_many(ended, 'offset')} that came in transactions "
                f"{'was' if aborted == 1 else 'were'} aborted, and never counted.",
            )  # fmt: skip

    def _open_transactions(self) -> Iterator[dict[str, Any]]:
        held = self._found.transactions["open"]
        if not held:
            yield _sentence("good", "transactions", "No transaction is open.")
            return
        name, _, since, offsets, _ = held[0]
        count = self._found.transactions["count"]
        verb = "is" if count == 1 else "are"
        yield _sentence(
            "warn", "transactions", f"{_many(count, 'transaction')} {verb} open; the oldest holds "
            f"{_many(offsets, 'offset')} of ", {"s": name}, f" since {self._time(since)}.",
        )  # fmt: skip

    def jumps(self) -> Iterator[dict[str, Any]]:
        kinds, rows = self._found.jumps["kinds"], self._found.jumps["rows"]
        if not rows:
            yield _sentence("good", "jumps", "No committed offset jumped.")
            return
        told = ", ".join(f"{count:,} {_WHERE.get(self._text(kind), self._text(kind))}" for kind, count, _ in kinds)
        total = sum(count for _, count, _ in kinds)
        group, topic, partition, at, _, _, distance, *_ = rows[0]
        went = "back" if distance < 0 else "ahead"
        yield _sentence(
            "warn", "jumps", f"{_many(total, 'offset jump')} ({told}); the longest: ", {"s": group},
            f" went {went} {_many(abs(distance), 'message')} in ", {"s": topic}, f"-{partition}",
            "." if at is None else f" at {self._time(at)}.",
        )  # fmt: skip

    def damage(self) -> Iterator[dict[str, Any]]:
        damage = self._found.damage
        records = sum(row[4] for row in damage["rows"])
        unread = sum(row[4] for row in damage["unread"])
        if damage["count"]:
            told = f"{_many(damage['count'], 'place')} of the log could not be read ({_many(records, 'record')})."
            yield _sentence("bad", "quarantine", told)
        if unread:
            yield _sentence("warn", "quarantine", f"{_many(unread, 'record')} could be read, but not understood.")
        if not damage["count"] and not unread:
            all_read = f"All {_many(self._found.read, 'record')} could be read."
            yield _sentence("good", "quarantine", all_read if self._found.read else "The log has no records.")

    def _names(self, of: Sequence[tuple[int, dict[str, Any]]], count: int) -> Iterator[Part]:
        for at, (_, row) in enumerate(of[:_NAMED]):
            if at:
                yield ", "
            yield self._string(row["group"])
        if count > _NAMED:
            yield f" and {count - _NAMED:,} more"

    def _number(self, group: str) -> int | None:
        return next((g for g, row in enumerate(self._rows) if row["group"] == group), None)

    def _string(self, text: str) -> dict[str, int]:
        number = self._strings.number(text)
        assert number is not None
        return {"s": number}

    def _text(self, number: int) -> str:
        return self._strings.all()[number]

    def _time(self, at: int) -> str:
        """Shorter if it is the day on which the report ends."""
        moment, end = datetime.fromtimestamp(at / 1000, UTC), datetime.fromtimestamp(self._found.at / 1000, UTC)
        return f"{moment:%H:%M}" if moment.date() == end.date() else f"{moment:%Y-%m-%d %H:%M}"


def _sentence(tone: str, to: str, *parts: Part, g: int | None = None, **more: str) -> dict[str, Any]:
    return {"tone": tone, "to": to, "g": g, "parts": list(parts), **more}


def _many(count: int, noun: str) -> str:
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count:,} times"


def _percent(share: float) -> str:
    if 0 < share < 0.001:
        return "less than 0.1 %"
    return f"{share * 100:.0f} %" if share >= 0.1 or share == 0 else f"{share * 100:.1f} %"


def _duration(seconds: float) -> str:
    for unit, name in ((86_400, "days"), (3_600, "h"), (60, "min")):
        if seconds >= 1.5 * unit:
            return f"{seconds / unit:.1f} {name}"
    return f"{seconds:.0f} s"


def _bytes(count: int) -> str:
    size = float(count)
    for unit in ("bytes", "KiB", "MiB", "GiB"):
        if size < 1024:
            return f"{size:.0f} {unit}" if unit == "bytes" else f"{size:.1f} {unit}"
        size /= 1024
    return f"{size:.1f} TiB"
