"""What a test is told when the broker cannot do as asked."""

from kohort.errors import KohortError


class NotPossible(KohortError):
    """This broker cannot do that: it is not running, or its process or its clock is another than that needs."""


class BrokerFailed(KohortError):
    """The broker did not start, or something went wrong in it that no request was told of."""
