"""`ssl.principal.mapping.rules`: what somebody is called whose certificate has this subject.

A rule is `RULE:pattern/replacement/`, with `L` or `U` behind it if the result is to be in small or capital letters;
`DEFAULT` is the whole subject. `\\/` stands for a slash. The first rule counts whose pattern fits the whole subject.
"""

import re
from typing import NamedTuple

from kohort.broker.security.principal import USER, Principal
from kohort.broker.setting_kinds import BadSetting

_SETTING = "ssl.principal.mapping.rules"
_RULE = re.compile(
    r"\s*(?:(?P<default>DEFAULT)|RULE:(?P<pattern>(?:\\.|[^\\/])*)/(?P<replacement>(?:\\.|[^\\/])*)/(?P<case>[LU]?))\s*"
    r"(?P<end>,|\Z)"
)
_GROUP = re.compile(r"\$(\d)")


class _Rule(NamedTuple):
    pattern: re.Pattern[str] | None
    replacement: str
    case: str

    def apply(self, subject: str) -> str | None:
        """What the rule makes of a subject; None if it does not fit."""
        if self.pattern is None:
            return subject
        found = self.pattern.fullmatch(subject)
        if found is None:
            return None
        count = self.pattern.groups
        name = _GROUP.sub(lambda one: found[int(one[1])] or "" if int(one[1]) <= count else one[0], self.replacement)
        return name.lower() if self.case == "L" else name.upper() if self.case == "U" else name


class PrincipalRules:
    """`BadSetting` if a rule cannot be read."""

    def __init__(self, text: str) -> None:
        self._rules: list[_Rule] = []
        at = 0
        while not self._rules or at < len(text):
            found = _RULE.match(text, at)
            if found is None:
                raise BadSetting(f"{_SETTING} cannot be {text!r}: from {text[at:]!r} on it is no rule")
            at = found.end()
            if found["default"]:
                self._rules.append(_Rule(None, "", ""))
            else:
                self._rules.append(_Rule(_compiled(found["pattern"]), _plain(found["replacement"]), found["case"]))
            if found["end"] and at == len(text):
                raise BadSetting(f"{_SETTING} cannot be {text!r}: it ends with a comma")

    def principal_of(self, subject: str) -> Principal:
        for rule in self._rules:
            name = rule.apply(subject)
            if name is not None:
                return Principal(USER, name)
        raise BadSetting(f"no rule of {_SETTING} fits {subject}")


def _compiled(pattern: str) -> re.Pattern[str]:
    try:
        return re.compile(pattern.replace("\\/", "/"))
    except re.error as error:
        raise BadSetting(f"{_SETTING}: {pattern!r} is no pattern: {error}") from None


def _plain(replacement: str) -> str:
    return re.sub(r"\\(.)", r"\1", replacement)
