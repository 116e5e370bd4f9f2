"""What can go wrong, split by blame: bytes (`CorruptLog`), caller (`ClientError`), disk (`StorageFailed`)."""


class KohortError(Exception):
    """Any failure that kohort foresees; its text is one line for people."""


class CorruptLog(KohortError):
    """Bytes that are not what they claim to be, with the file, the byte position and the reason."""

    def __init__(self, reason: str, *, path: str = "", position: int = 0) -> None:
        super().__init__(reason, path, position)
        self.reason = reason
        self.path = path
        self.position = position

    def __str__(self) -> str:
        where = f"{self.path}, byte {self.position}" if self.path else f"byte {self.position}"
        return f"{where}: {self.reason}"

    def retold(self) -> "CorruptLog":
        """The same damage, never raised: whoever keeps it keeps no bytes in the frames that it came through."""
        return CorruptLog(self.reason, path=self.path, position=self.position)

    def within(self, path: str, offset: int = 0) -> "CorruptLog":
        """The same damage, told from outside: in that file, `offset` bytes further on."""
        return CorruptLog(self.reason, path=path or self.path, position=self.position + offset)


class ClientError(KohortError):
    """A request that Kafka refuses; subclasses name the refusal."""


class OffsetOutOfRange(ClientError):
    """An offset before the log start or behind what may be read."""


class CorruptMessage(ClientError):
    """A batch whose checksum or framing is wrong as it arrives."""


class InvalidRecord(ClientError):
    """A batch that is sound in itself but not one that a log accepts."""


class InvalidTimestamp(ClientError):
    """A timestamp that the topic's settings do not allow."""


class RecordTooLarge(ClientError):
    """A batch beyond `max.message.bytes`."""


class RecordListTooLarge(ClientError):
    """An append that no segment could hold."""


class OutOfOrderSequence(ClientError):
    """A batch of an idempotent producer that does not follow the one before."""


class InvalidProducerEpoch(ClientError):
    """A producer that a newer one with the same id has fenced."""


class InvalidTxnState(ClientError):
    """A plain batch of a producer that has a transaction open."""


class TransactionCoordinatorFenced(ClientError):
    """A marker of a transaction coordinator that is no longer in charge."""


class StorageFailed(KohortError):
    """The disk did not do what it was told; nothing more may be acknowledged."""
