"""Who may do what: Kafka's `StandardAuthorizer`, on the broker's own log.

Without `authorizer.class.name` there is none, and everybody may do everything. With one, whatever no entry allows is
refused, except to super users. What was found out is remembered until an entry changes. Refusals are told to the
logger `kohort.authorizer`.
"""

import logging
from collections.abc import Collection, Iterable, Mapping, Sequence
from heapq import nsmallest
from typing import TYPE_CHECKING

from kohort.broker.security.acl import CLUSTER_NAME, Acl, AclFilter, PermissionType, canonical_host
from kohort.broker.security.acl_rules import AclRules
from kohort.broker.security.permission import Permission
from kohort.broker.security.principal import Principal, read_principals
from kohort.errors import CorruptLog, ErrorCode

if TYPE_CHECKING:
    from kohort.broker.security.security_log import Fact, Key, SecurityLog, Told
    from kohort.broker.settings import BrokerConfig

logger = logging.getLogger("kohort.authorizer")

MOST_ACLS = 50_000
_KIND = "acl"
_BATCH_SIZE = 1 << 16
"""So many characters of a change are one batch of the log, or a few more."""
_MOST_REMEMBERED = 20_000
_LONGEST_REMEMBERED = 256
"""Longer names are looked up anew each time, so that what is remembered stays small."""
_MOST_SHOWN = 10
_WIDEST_NAME = 200


class Authorizer:
    """Decides, keeps the entries, and tells of refusals. Everything here is for the loop's thread."""

    def __init__(self, log: "SecurityLog", super_users: Iterable[Principal], *, allows_unless_found: bool) -> None:
        self._log = log
        self._super_users = frozenset(super_users)
        self._if_none = allows_unless_found
        self._rules = AclRules(_read(key) for key, _ in log.of_kind(_KIND))
        self._remembered: dict[tuple[Principal, str, Permission, str | None], bool] = {}
        log.watchers.append(self._changed)

    @classmethod
    def configured(cls, config: "BrokerConfig", log: "SecurityLog") -> "Authorizer | None":
        if not config.authorizer_class_name:
            return None
        if_none = config.allow_everyone_if_no_acl_found
        return cls(log, read_principals(config.super_users), allows_unless_found=if_none)

    # Questions

    def may(self, principal: Principal, client_host: str, permission: Permission, name: str = CLUSTER_NAME) -> bool:
        """Whether somebody who is connected from there may do this. Hosts are told as in `Call.client_host`."""
        known = self._remembered.get((principal, client_host, permission, name))
        return self._find_out(principal, client_host, permission, name) if known is None else known

    def may_somewhere(self, principal: Principal, client_host: str, permission: Permission) -> bool:
        """Whether there may be any resource with which somebody may do this."""
        known = self._remembered.get((principal, client_host, permission, None))
        return self._find_out(principal, client_host, permission, None) if known is None else known

    def _find_out(self, principal: Principal, client_host: str, permission: Permission, name: str | None) -> bool:
        host = client_host.removeprefix("/")
        host = canonical_host(host) or host
        operation, resource_type, if_none = permission.operation, permission.resource_type, self._if_none
        if principal in self._super_users:
            found = True
        elif name is None:
            found = self._rules.may_somewhere(str(principal), host, operation, resource_type, if_none=if_none)
        else:
            found = self._rules.may(str(principal), host, operation, resource_type, name, if_none=if_none)
        if name is None or len(name) <= _LONGEST_REMEMBERED:
            if len(self._remembered) >= _MOST_REMEMBERED:
                self._remembered.clear()
            self._remembered[principal, client_host, permission, name] = found
        return found

    def note_refusal(
        self, principal: Principal, client_host: str, permission: Permission, names: Collection[str], asked: str
    ) -> None:
        """Somebody has asked for what is refused."""
        if logger.isEnabledFor(logging.INFO):
            some = ", ".join(_shown(name) for name in nsmallest(_MOST_SHOWN, names))
            more = f" and {len(names) - _MOST_SHOWN} more" if len(names) > _MOST_SHOWN else ""
            what = f"{permission.operation.name} {permission.resource_type.name} {some}{more}"
            host = client_host.removeprefix("/")
            logger.info("denied: principal %s from %s asked with %s for %s", _shown(str(principal)), host, asked, what)

    # Entries

    def __contains__(self, acl: Acl) -> bool:
        return acl in self._rules

    def acls(self, wanted: AclFilter) -> list[Acl]:
        """All entries that fit."""
        only = wanted.only
        if only is not None:
            return [only] if only in self._rules else []
        return [acl for acl in self._rules if wanted.fits(acl)]

    def has_room(self, more: int) -> bool:
        return len(self._rules) + more <= MOST_ACLS

    def create(self, acls: Iterable[Acl], told: "Told") -> None:
        """`told` hears when all are safe, or why not. What denies comes first: if not everything comes to be, nobody
        may do more than was meant."""
        new = sorted(acls, key=lambda acl: acl.permission is not PermissionType.DENY)
        self._change({acl.key: {} for acl in new}, told)

    def delete(self, acls: Iterable[Acl], told: "Told") -> None:
        """What denies goes last."""
        going = sorted(acls, key=lambda acl: acl.permission is PermissionType.DENY)
        self._change({acl.key: None for acl in going}, told)

    def _change(self, changes: "Mapping[Key, Fact | None]", told: "Told") -> None:
        batches: list[dict[Key, Fact | None]] = []
        room = 0
        for key, fact in changes.items():
            if room <= 0:
                batches.append({})
                room = _BATCH_SIZE
            batches[-1][key] = fact
            room -= sum(map(len, key))
        waiting, failed = len(batches), ErrorCode.NONE
        if not batches:
            told(ErrorCode.NONE)

        def settle(error: ErrorCode) -> None:
            nonlocal waiting, failed
            waiting -= 1
            failed = failed or error
            if not waiting:
                told(failed)

        for batch in batches:
            self._log.change(batch, settle)

    def _changed(self, changes: "Mapping[Key, Fact | None]") -> None:
        for key, fact in changes.items():
            if key[0] != _KIND:
                continue
            self._remembered.clear()
            if fact is None:
                self._rules.remove(_read(key))
            else:
                self._rules.add(_read(key))


def _read(key: Sequence[str]) -> Acl:
    """A rule that cannot be understood might be one that denies: without it nobody is let in."""
    try:
        return Acl.from_key(key)
    except ValueError as error:
        raise CorruptLog(f"{_shown(str(list(key)))} in the security log: {error}") from error


def _shown(name: str) -> str:
    """On one line, with nothing that moves a terminal, and not endless."""
    text = repr(name)
    return text if len(text) <= _WIDEST_NAME else f"{text[: _WIDEST_NAME - 21]}…{text[-20:]}"
