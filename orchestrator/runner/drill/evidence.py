"""The data collected during a restore test: the evidence at its end, whatever its outcome."""

from orchestrator.domain.drill import DrillResult, UserCheckResult
from orchestrator.domain.fast_dataclass import dataclass
from orchestrator.domain.names import show_name
from orchestrator.domain.plan import Refusal
from orchestrator.domain.point import Finding, VerificationResult
from orchestrator.domain.problem import DRILL_FAILED
from orchestrator.domain.run import Outcome, RunReport
from orchestrator.domain.units import show_count, show_duration
from orchestrator.planners.drill import estimate_whole
from orchestrator.runner.run_recorder import RunRecorder


@dataclass(frozen=True, slots=True, kw_only=True)
class DrillRequest:
    """The request for a restore test. `seed`: of the random choice.

    `self_test`: the scratch copy is damaged on purpose and the test must detect it.
    """

    whole: bool = False
    self_test: bool = False
    seed: int | None = None

    def command(self, job: str) -> str:
        """Return the command line of this restore test."""
        seed = f" --seed {self.seed}" if self.seed is not None else ""
        return (
            f"poolferry drill {job}{' --whole' if self.whole else ''}{' --self-test' if self.self_test else ''}{seed}"
        )


class DrillEvidence:
    """The record of one restore test. A value of None is unknown, or was not reached."""

    def __init__(self, journal: RunRecorder, drill_request: DrillRequest) -> None:
        self.journal = journal
        self.drill_request = drill_request
        self.seed = int(journal.tools.chance() * 2**31) if drill_request.seed is None else drill_request.seed
        self.point: str | None = None
        self.files = self.bytes = 0
        self.of_files: int | None = None
        self.of_bytes: int | None = None
        self.restore_s: float | None = None
        self.differences: tuple[str, ...] = ()
        self.findings: tuple[Finding, ...] = ()  # damage of the copy itself
        self.checked: UserCheckResult | None = None

    def evidence(self, outcome: Outcome, why: str) -> DrillResult:
        """Return the complete evidence."""
        return DrillResult(
            place=self.journal.job.target.name, point=self.point, outcome=outcome, why=why, whole=self.drill_request.whole,
            self_test=self.drill_request.self_test, seed=self.seed, files=self.files, bytes=self.bytes, of_files=self.of_files,
            of_bytes=self.of_bytes, restore_s=self.restore_s, differences=self.differences, checked=self.checked,
        )  # fmt: skip

    def estimate(self) -> str:
        """Return the estimated time of a whole restore as text; empty: unknown."""
        took = estimate_whole(self.evidence(Outcome.DONE, ""))
        return (
            f"; a whole restore would take about {show_duration(took)}" if took and not self.drill_request.whole else ""
        )

    def told_files(self) -> str:
        """Return "100 of 2345 files", "all 3 files"."""
        many = self.of_files or 0
        if self.files == many:
            return f"all {show_count(many, 'file')}" if many > 1 else "the one file"
        return f"{self.files} of {show_count(many, 'file')}"

    def note(self, findings: tuple[Finding, ...], most: int = 50) -> None:
        """Record each difference as a line."""
        self.differences = tuple(
            f"{show_name(found.path) or '.'}: {found.verdict.value}: {found.detail}" for found in findings[:most]
        )

    def refuse(self, refusal: Refusal) -> RunReport:
        """Return the report of a refusal: nothing was tested."""
        self.journal.decided(refusal)
        hint = self.with_next(refusal.hint)
        return self.journal.ended(Outcome.REFUSED, f"no drill: {refusal.why}", hint=hint, evidence=refusal.evidence)

    def with_next(self, hint: str) -> str:
        """Return a hint that also says to test again: until a test ends well, the job counts as failing."""
        again = f"poolferry drill {self.journal.job.name}"
        return hint if again in hint else f"{hint}; then {again}" if hint else again

    def fail(self, why: str, hint: str) -> RunReport:
        """Return the report of a failed restore test."""
        told = f"{DRILL_FAILED}{why}"
        return self.journal.ended(Outcome.FAILED, told, hint=self.with_next(hint), evidence=self.differences)

    def end_self_test(self, harmed: tuple[bytes, ...], reading: VerificationResult) -> RunReport:
        """Return the report on the deliberate damage: success only when all of it was found."""
        self.note(reading.findings)
        found = {each.path for each in reading.findings}
        missed = [path for path in harmed if path not in found]
        if missed or not harmed:
            what = ", ".join(map(show_name, missed)) or "anything: there is no file with contents"
            why = (
                f"the scratch copy was damaged on purpose, and that was not found in {what}: such a drill shows nothing"
            )
            return self.journal.ended(Outcome.FAILED, why, hint="report this; until then trust `poolferry verify`")
        why = f"a drill of point {self.point} can fail: its scratch copy was damaged on purpose, and found to be so: "
        named = ", ".join(f"{show_name(each.path)} {each.said}" for each in reading.findings)
        return self.journal.ended(Outcome.DONE, f"{why}{named}")
