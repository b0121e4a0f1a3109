"""Two readings side by side, such as of both sides of a copy: where one fails, the other is ended at once."""

from collections.abc import Callable
from typing import Generic, TypeVar

from orchestrator.domain.errors import OrchestratorError, Stopped
from orchestrator.process.background import BackgroundCall
from orchestrator.process.executor import PipelineFailed, Reader, StopReason

_T = TypeVar("_T")
_R = TypeVar("_R", bound=Reader)
_OTHER_FAILED = "what was read beside it failed"


class ReadingBeside(BackgroundCall[_T], Generic[_R, _T]):
    """A reading in a thread of its own, beside another one in the body of a `with`. Where one fails, the other is ended at once.

    Both read with an `executor` of their own. What failed by itself is raised at the end of the `with`, never that the other was ended for
    it; where both did, the words of both.
    """

    def __init__(self, executor: _R, read: Callable[[_R], _T]) -> None:
        self.executor, self._stop = executor.beside()
        super().__init__(lambda: self._ending_the_other(read))

    def _ending_the_other(self, read: Callable[[_R], _T]) -> _T:
        try:
            return read(self.executor)
        except BaseException:
            self._stop.request(_OTHER_FAILED)
            raise

    def __exit__(self, *raised: object) -> None:
        error = raised[1] if isinstance(raised[1], BaseException) else None
        if error is not None:
            self._stop.request(_OTHER_FAILED)
        super().__exit__()
        theirs, self._error = self._error, None  # its frames hold this object
        if error is None or theirs is None or theirs is error or was_stopped(theirs):
            return
        if was_stopped(error):
            raise theirs from error
        if isinstance(error, OrchestratorError):
            error.why = f"{error.why}; and beside it: {theirs}"


def was_stopped(error: BaseException) -> bool:
    """Return whether an error says no more than that a program was ended on request."""
    return isinstance(error, Stopped) or (
        isinstance(error, PipelineFailed) and error.result.stopped is StopReason.STOPPED
    )
