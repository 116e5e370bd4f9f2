"""The disk of a simulated machine: in memory, recorded, and faulty when the seed wants it."""

from collections.abc import Callable
from random import Random

from kohort.log.crash_images import Disk
from kohort.log.files import Files
from kohort.log.recorded_files import RecordingFiles
from kohort.log.simulated_files import Image, SimulatedFiles
from tests.simulation.faults import FaultyFiles, any_fault

DATA = "/data"
EMPTY: Image = {DATA: None}


class Machine:
    """A disk through the lives of a broker.

    What a killed process has written and not synced is there for the next one, and may still go when the power fails.
    """

    def __init__(self, random: Random, take_time: Callable[[], None]) -> None:
        self._random = random
        self._take_time = take_time
        self._disk = Disk(EMPTY)
        self._files = SimulatedFiles(EMPTY)
        self._recorded = RecordingFiles(self._files)
        self._faulty: FaultyFiles | None = None

    def boot(self, *, fault_within: int | None = None) -> Files:
        """The files for a broker's next life; one of the next calls is hit by a fault, if that is wanted."""
        self._recorded = RecordingFiles(self._files)
        self._faulty = None
        if fault_within is None:
            return self._recorded
        self._faulty = FaultyFiles(self._recorded, any_fault(self._random, fault_within), self._take_time)
        return self._faulty

    @property
    def hits(self) -> int:
        """How many calls of this life were hit by its fault."""
        return self._faulty.hits if self._faulty is not None else 0

    def lose_power(self) -> None:
        """What was not synced is there, is not there, or is there in part."""
        self.power_off()
        image = self._disk.any_image(self._random)
        self._disk, self._files = Disk(image), SimulatedFiles(image)

    def power_off(self) -> None:
        """The process ends and the operating system lives: everything that was written is there, synced or not."""
        for operation in self._recorded.operations:
            self._disk.apply(operation)
        self._recorded.operations.clear()
        self._files = SimulatedFiles(self._files.image())

    def files(self) -> SimulatedFiles:
        """The disk as it stands, for whoever reads."""
        return self._files
