"""The progress of a stage's copies, or of a whole plan's, as one sum of bytes."""

from collections.abc import Sequence

from orchestrator.domain.events import TransferProgress
from orchestrator.domain.plan import Step
from orchestrator.domain.units import Bytes
from orchestrator.runner.run_recorder import RunRecorder


class StageProgress:
    """The bytes so far over some steps: of a stage, or of a `whole` plan."""

    def __init__(self, journal: RunRecorder, steps: Sequence[Step], *, whole: bool = False) -> None:
        self._tell = journal.tools.notify
        aside = [step for step in steps if step.ahead or (whole and step.spare)]
        self._expected = {id(step): Bytes(0) if step in aside else step.expected for step in steps if step.copies}
        self._copies = [step for step in steps if step.copies]
        self._done: dict[int, int] = {}
        self._whole = whole

    def feed(self, step: Step, done: int | None, expected: int | None) -> None:
        """Report progress. `expected`: the size that the copying program reported meanwhile, if the plan had none."""
        if done is None:
            return
        self._done[id(step)] = done
        if self._expected.get(id(step)) is None and expected is not None:
            self._expected[id(step)] = Bytes(expected)
        sizes = self._expected.values()
        whole = None if None in sizes else sum(size or 0 for size in sizes)
        self._tell(TransferProgress(done=sum(tuple(self._done.values())), expected=whole, whole=self._whole))

    def ended(self, step: Step) -> None:
        """Set the expected size to the bytes moved: earlier sizes are estimates."""
        done = rest = Bytes(self._done.get(id(step), 0))
        for copy in self._copies[self._copies.index(step) + 1 :] if step.ahead else ():
            taken = min(rest, self._expected[id(copy)] or 0)
            if taken:
                self._expected[id(copy)] = Bytes((self._expected[id(copy)] or 0) - taken)
            rest = Bytes(rest - taken)
        if id(step) in self._expected:
            self._expected[id(step)] = done
