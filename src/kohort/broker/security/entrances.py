"""What the settings say of listeners, made ready to be opened."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from kohort.broker.entrance import Entrance
from kohort.broker.security.exchange import Exchange, Mechanism
from kohort.broker.security.jaas import users_in
from kohort.broker.security.listener_settings import OAUTHBEARER, OF_A_LISTENER, PLAIN, config_of
from kohort.broker.security.listeners import Address, Listener, listeners_of
from kohort.broker.security.plain import PasswordChecks, PlainExchange
from kohort.broker.security.sasl import SaslAuthenticator
from kohort.broker.security.scram import ScramExchange
from kohort.broker.security.scram_credentials import ScramMechanism
from kohort.broker.security.tls import Tls
from kohort.broker.setting_kinds import BadSetting
from kohort.broker.traffic import Logins

if TYPE_CHECKING:
    from kohort.broker.broker import Broker


class Entrances:
    """Makes them for one broker, the first one first; `BadSetting` if something does not fit."""

    def __init__(self, broker: "Broker", logins: Logins) -> None:
        self._broker = broker
        self._logins = logins
        self._checks = PasswordChecks(broker.users, broker.loop)
        config = broker.config
        delay_ms, idle_ms = config.listener.connection_failed_authentication_delay_ms, config.connections_max_idle_ms
        if delay_ms >= idle_ms:
            raise BadSetting(
                f"connection.failed.authentication.delay.ms {delay_ms} must be less than "
                f"connections.max.idle.ms {idle_ms}"
            )
        listeners = listeners_of(config.listener, Address(config.host, config.port), config.given)
        self.all: Sequence[Entrance] = tuple(map(self._entrance, listeners))

    def start(self) -> None:
        """They are about to be opened."""
        if any(entrance.listener.has_sasl for entrance in self.all):
            self._broker.users.keep_secret()

    def close(self) -> None:
        """They are all closed."""
        self._checks.close()

    def _entrance(self, listener: Listener) -> Entrance:
        config = config_of(self._broker.config.listener, self._broker.config.given, listener.name)
        entrance = Entrance(listener, Tls(listener.name, config) if listener.has_tls else None)
        if listener.has_sasl:
            if not config.sasl_enabled_mechanisms:
                raise BadSetting(f"sasl.enabled.mechanisms has none for listener {listener.name}")
            mechanisms = {name: self._mechanism(entrance, name) for name in config.sasl_enabled_mechanisms}
            entrance.mechanisms = tuple(mechanisms)
            clock = self._broker.clock
            entrance.new_authenticator = lambda: SaslAuthenticator(mechanisms, clock, self._logins)
        return entrance

    def _mechanism(self, entrance: Entrance, name: str) -> Mechanism:
        base, given, listener = self._broker.config.listener, self._broker.config.given, entrance.listener.name
        config = config_of(base, given, listener, name)
        new_exchange: Callable[[], Exchange]
        if name == PLAIN:
            setting = f"{OF_A_LISTENER}{listener.lower()}.{PLAIN.lower()}.sasl.jaas.config"
            own = users_in(setting, config.sasl_jaas_config or "")
            new_exchange = partial(PlainExchange, self._checks, own)
        elif name == OAUTHBEARER:
            from kohort.broker.security.jwks import keys_of
            from kohort.broker.security.oauthbearer import OAuthBearerExchange, TokenCheck

            keys = keys_of(config)
            new_exchange = partial(OAuthBearerExchange, TokenCheck(config, keys))
            entrance.helpers.append(keys)
        else:
            mechanism = next(one for one in ScramMechanism if one.sasl_name == name)
            new_exchange = partial(ScramExchange, mechanism, self._broker.users)
        return Mechanism(name, new_exchange, config.connections_max_reauth_ms)
