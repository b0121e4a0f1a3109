"""An executor whose programs run in a machine of the lab, so that an engine is tried there without our own start-up.

What runs is the very line that a log or a plan would show, in a shell of the machine. Changes things.
"""

import re
import time
from collections.abc import Callable, Generator

from orchestrator.domain.command import Pipeline
from orchestrator.domain.units import Seconds
from orchestrator.process.executor import LIMIT, Writer, only_reads
from orchestrator.process.line import pipeline_line
from orchestrator.process.result import Result, broken
from orchestrator.process.stop import Stop
from tests.lab.common import Machine

_STATUSES = re.compile(rb"\nstatuses((?: \d+)+)\n$")


class InGuest(Writer):
    """Reads and writes in a machine, as its user; `ran` holds the lines."""

    def __init__(self, machine: Machine, *, user: str = "", ssh_options: tuple[str, ...] = ()) -> None:
        super().__init__(ssh_options=ssh_options)
        self._machine = machine
        self._user = user
        self.ran: list[str] = []

    def read(self, pipeline: Pipeline, *, limit: int = LIMIT, timeout: Seconds | None = None) -> Result:
        del limit, timeout
        only_reads(pipeline)
        return self._run(pipeline)

    def _records(self, pipeline: Pipeline, separator: bytes) -> Generator[bytes, None, None]:
        result = self._run(pipeline)
        if not result.well:
            raise broken(pipeline, result, self.ssh_options)
        yield from result.stdout.removesuffix(separator).split(separator)

    def stream(
        self,
        pipeline: Pipeline,
        *,
        stop: Stop | None = None,
        stall_after: Seconds | None = None,
        on_output: Callable[[bytes], None] | None = None,
        on_tick: Callable[[], None] | None = None,
        on_bytes: Callable[[int], None] | None = None,
        on_errors: Callable[[bytes], None] | None = None,
    ) -> Result:
        del stop, stall_after, on_output, on_tick, on_bytes, on_errors
        return self._run(pipeline)

    def _run(self, pipeline: Pipeline) -> Result:
        line = pipeline_line(pipeline, self.ssh_options)
        self.ran.append(line)
        begun = time.monotonic()
        prelude = "export LC_ALL=C.UTF-8 PATH=$PATH:/usr/sbin:/sbin"
        # What the programs say is told apart by stage only in real runs; here the last stage's words are everybody's.
        words = ["bash", "-c", f'{prelude}; {line}\nprintf "\\nstatuses %s\\n" "${{PIPESTATUS[*]}}" >&2']
        ended = self._machine.sh(words, check=False, user=self._user)
        told = _STATUSES.search(ended.errors)
        assert told, ended
        exits = tuple(int(status) for status in told[1].split())
        said = ended.errors[: told.start()].decode(errors="surrogateescape")
        return Result(
            exits=exits,
            stdout=ended.out,
            last_words=("",) * (len(exits) - 1) + (said,),
            took_s=time.monotonic() - begun,
        )
