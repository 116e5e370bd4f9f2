"""The disk of a simulated machine: in memory, recorded, and faulty when the seed wants it."""

import errno
from random import Random

from kohort.log.crash_images import Disk
from kohort.log.faulty_files import Fault, FaultyFiles
from kohort.log.recorded_files import RecordingFiles
from kohort.log.simulated_files import Image, SimulatedFiles

DATA = "/data"
EMPTY: Image = {DATA: None}


class Machine:
    """A disk through the lives of a broker."""

    def __init__(self, random: Random) -> None:
        self._random = random
        self._image: Image = dict(EMPTY)
        self._recorded = RecordingFiles(SimulatedFiles(self._image))
        self.faulty = FaultyFiles(self._recorded)

    def boot(self, *, fault_within: int | None = None) -> FaultyFiles:
        """The files for a broker's next life; one of the next calls fails, if that is wanted."""
        fault = None
        if fault_within is not None:
            fault = Fault(
                call=self._random.randrange(fault_within),
                number=self._random.choice((errno.EIO, errno.ENOSPC)),
                persistent=self._random.random() < 0.3,
                short_write=self._random.choice((0, 1, 20, 100)),
            )
        self._recorded = RecordingFiles(SimulatedFiles(self._image))
        self.faulty = FaultyFiles(self._recorded, fault)
        return self.faulty

    def lose_power(self) -> None:
        """What was not synced is there, is not there, or is there in part."""
        self._image = self._used().any_image(self._random)

    def power_off(self) -> None:
        """The process ends and the operating system lives: everything that was written is there."""
        self._image = self._used().whole_image()

    def _used(self) -> Disk:
        """The disk at the end of a life."""
        disk = Disk(self._image)
        for operation in self._recorded.operations:
            disk.apply(operation)
        return disk

    def files(self) -> SimulatedFiles:
        """The disk as it stands, for whoever reads."""
        return SimulatedFiles(self._image)
