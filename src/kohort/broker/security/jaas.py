"""Users of PLAIN as Kafka's settings have them: a line of JAAS, of which nothing is loaded or run.

`org.apache.kafka.common.security.plain.PlainLoginModule required user_alice="her password" user_bob="his";` What else
it says, a broker's own `username` and `password` above all, is for brokers that talk to each other.
"""

import re
from collections.abc import Mapping

from kohort.broker.setting_kinds import BadSetting

_MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule"
_HEAD = re.compile(rf"\s*(?:{re.escape(_MODULE)}\s+(?:required|requisite|sufficient|optional)(?=[\s;]|\Z))?")
_OPTION = re.compile(r'\s*(?P<name>[^\s="]+)\s*=\s*(?:"(?P<quoted>(?:[^"\\]|\\.)*)"|(?P<plain>[^\s";]+))', re.DOTALL)
_USER = "user_"


def users_in(setting: str, text: str) -> Mapping[str, str]:
    """Passwords by names; `BadSetting`, which does not tell them, if the line cannot be read."""
    head = _HEAD.match(text)
    at = head.end() if head else 0
    found = {}
    while option := _OPTION.match(text, at):
        at = option.end()
        quoted = option["quoted"]
        value = option["plain"] if quoted is None else re.sub(r"\\(.)", r"\1", quoted, flags=re.DOTALL)
        name = option["name"].removeprefix(_USER)
        if name != option["name"]:
            if not name or not value:
                raise BadSetting(f"{setting}: a user without a name or a password")
            found[name] = value
    if text[at:].strip() not in ("", ";"):
        raise BadSetting(f'{setting} is not {_MODULE} required user_NAME="PASSWORD" ...;')
    return found
