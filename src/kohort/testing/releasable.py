"""A real disk whose lock can be taken from a broker that has crashed, as the system does with a process."""

from kohort.log.files import RealFile, RealFiles


class ReleasableFiles(RealFiles):
    """`RealFiles` that know who holds a lock."""

    def __init__(self) -> None:
        self._held: list[RealFile] = []

    def lock(self, path: str) -> RealFile:
        self._held = [super().lock(path)]
        return self._held[0]

    def release(self) -> None:
        """Whoever held it holds it no more."""
        for held in self._held:
            held.close()
        self._held = []
