"""The permit of one run: asked for before it begins, kept alive while it goes on, given back at its end.

A run is never in the centre's hands. Where the centre is away it is delayed by a second at most, and then not again for a while;
what it is to know is said once it is back. A permit that is held never ends a run, whatever becomes of the centre meanwhile.
"""

import contextlib
import os
import threading
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from orchestrator import compose
from orchestrator.domain.errors import CentreRefused, CentreUnreachable, NotNow, OrchestratorError, Stopped
from orchestrator.domain.permit import (
    SEEN_SOON,
    PermitAnswer,
    PermitRequest,
    RunVoice,
    describe_absence,
    describe_lapse,
    describe_wait,
)
from orchestrator.domain.units import show_duration
from orchestrator.process.stop import StopRequest

if TYPE_CHECKING:
    from orchestrator.domain.fleet import FleetIdentity
    from orchestrator.domain.machine import FleetOptions
    from orchestrator.fleet.connection import CentreSession

    _Membership = tuple[FleetOptions, FleetIdentity]

PROMPT_S = 0.9  # for all that a run that goes on waits for a centre which is away, at its begin and its end together
PATIENT_S = 10.0  # for one answer, of a run that may wait
AWAY_S = 60.0  # for so long after it was found away, nobody waits for it again
_AWAY = "fleet-away"
_TELL_S = 60.0  # at least between two lines of history about the wait
_CUT_S = 60.0  # within which the centre sees that a session was cut, by its keepalives
_ENDS_S = 3.0  # within which a session of this run that ended a moment ago has ended there, too


class CentrePermits:
    """Permits from the centre that poolferry.toml names. `patience_s`: how long a run waits in the queue; None: until it is its turn.

    `visit_patience_s`: how long it waits for a centre that is away, at most, however long its job would. `waited_s`: what all did.
    `runs_elsewhere`: returns True while another process of this host has a run of the job: only then the permit that is held is not an earlier run's.
    """

    def __init__(
        self,
        where: compose.Directories,
        *,
        patience_s: float | None = None,
        lease_s: int | None = None,
        runs_elsewhere: Callable[[], bool] = lambda: False,
    ) -> None:
        self._where, self.patience_s, self._lease_s, self.runs_elsewhere = where, patience_s, lease_s, runs_elsewhere
        self.visit_patience_s: float | None = None
        self.aside = ""  # what is said of a wait besides
        self.waited_s = 0.0
        self._early: _PermitLine | None = None
        self._lease: _LeaseThread | None = None
        self._spent_s = 0.0  # of PROMPT_S, by answers that this run waited for
        self._without: float | None = None  # the seconds after which a run goes on without: the centre is away

    def lends_at_once(self, job: str, request: PermitRequest) -> bool:
        """Ask once; return False when a run of the job would wait now: for its turn, or with patience for a centre that is away.

        What was lent is kept for the `hold` that follows, which asks again, or until `drop`. A place in the queue is kept, and holds nobody up.
        """
        away_file = f"{self._where.state}/{_AWAY}"
        if _away_for(away_file) is not None:
            return request.patience is None
        try:
            line = _PermitLine(job, request, *self._membership(), self._lease_s or _lease_s())
        except OrchestratorError:
            return True  # it goes on without, and says why
        begun = compose.monotonic()
        try:
            answer = line.ask(taken=False, seconds=PROMPT_S if request.patience is None else PATIENT_S)
        except OrchestratorError:
            line.close()
            _remember_away(away_file)
            return request.patience is None
        finally:
            self._spent_s = compose.monotonic() - begun
        if answer.granted:
            self._early = line
        else:
            line.close()
        return answer.granted or (answer.busy and self.runs_elsewhere())

    def drop(self) -> None:
        """Give back what was lent for a run that did not begin."""
        early, self._early = self._early, None
        self._without, self._spent_s = None, 0.0
        if early is not None:
            early.release(1.0)

    def obtain(self, job: str, request: PermitRequest, voice: RunVoice, stop: StopRequest) -> None:
        """Wait for the permit of a job, and keep what was lent for the `hold` that follows, or until `drop`. Raises: as `hold`."""
        try:
            membership = self._membership()
        except OrchestratorError:
            return  # `hold` says why
        self._wait(job, request, membership, voice, stop)

    @contextlib.contextmanager
    def hold(self, job: str, request: PermitRequest, voice: RunVoice, stop: StopRequest) -> Iterator[None]:
        """Hold the permit of a job while inside, or go on without it. Raises: Stopped, and NotNow at the end of the patience.

        What was lent before is asked for again: since then this machine may have slept, the line may have been cut, or another copy of
        the centre may answer, and somebody else may have it.
        """
        try:
            membership = self._membership()
        except OrchestratorError as error:
            hint = f"; {error.hint}" if error.hint else ""
            voice.warn(f"goes on without the permit {' and '.join(request.limits)}: {error.why}{hint}")
            yield
            return
        self._keep(self._wait(job, request, membership, voice, stop), voice)
        try:
            yield
        finally:
            self._give_back()

    @contextlib.contextmanager
    def give_back_meanwhile(
        self, job: str, request: PermitRequest, voice: RunVoice, stop: StopRequest
    ) -> Iterator[None]:
        """Give back what `hold` holds while inside, for others, and wait for it again afterwards. Raises: as `hold`.

        Why with the patience of a visit alone: a run that has copied does not end for want of a place in the queue.
        """
        if self._lease is None:  # it goes on without
            yield
            return
        self._early, membership, patience = self._lease.line.anew(), self._lease.line.membership, self.patience_s
        self._give_back()
        voice.say(f"gives back the permit {' and '.join(request.limits)} until the next attempt")
        yield
        if stop.reason is not None:
            return
        self.patience_s = self.visit_patience_s
        try:
            self._keep(self._wait(job, request, membership, voice, stop), voice)
        finally:
            self.patience_s = patience

    def _keep(self, line: "_PermitLine", voice: RunVoice) -> None:
        """Keep a permit alive, or claim it once the centre is back, until `_give_back`."""
        self._early = self._without = None
        self._lease = _LeaseThread(line, (self._lease_s or _lease_s()) / 3, voice)
        self._lease.start()

    def _give_back(self) -> None:
        lease, self._lease = self._lease, None
        spent, self._spent_s = self._spent_s, 0.0
        if lease is not None:
            lease.end(max(0.0, PROMPT_S - spent))

    def _wait(
        self, job: str, request: PermitRequest, membership: "_Membership", voice: RunVoice, stop: StopRequest
    ) -> "_PermitLine":
        """Return the line on which the permit was lent, or is to be claimed later."""
        line, self._early = self._early, None
        if line is None or self._without is None:
            line = line or _PermitLine(job, request, *membership, self._lease_s or _lease_s())
            asking = _Asking(line, voice, stop, f"{self._where.state}/{_AWAY}", self, spent_s=self._spent_s)
            begun = compose.monotonic()
            try:
                took = asking.until_granted()
            finally:
                self.waited_s += compose.monotonic() - begun
            self._spent_s += took
            self._without = None if asking.lent else took
        self._early = line
        return line

    def _membership(self) -> "_Membership":
        """Return the centre and who this host is there. Raises: OrchestratorError with why it cannot be asked."""
        from orchestrator.fleet.connection import INSTALL, has_library
        from orchestrator.fleet.credentials import read_identity

        fleet = compose.read_machine_config(self._where).fleet
        identity = read_identity(self._where.state)
        if fleet.centre is None or identity is None:
            raise OrchestratorError(
                "this host has joined no centre; `poolferry fleet invite` there prints how to join one"
            )
        if not has_library():
            raise OrchestratorError("a fleet needs psycopg, which is not installed", hint=INSTALL)
        return fleet, identity


class JobPermit:
    """The permit of one run of a job, as a run sees it."""

    def __init__(self, lender: CentrePermits, job: str, request: PermitRequest, stop: StopRequest) -> None:
        self._lender, self._job, self._request, self._stop = lender, job, request, stop

    def obtain(self, voice: RunVoice) -> None:
        """Wait until it is lent, and keep it for `hold`. Raises: Stopped, and NotNow at the end of the patience."""
        self._lender.obtain(self._job, self._request, voice, self._stop)

    def hold(self, voice: RunVoice) -> contextlib.AbstractContextManager[None]:
        """Hold it while inside, after a wait where it was not obtained before. Raises: as `obtain`."""
        return self._lender.hold(self._job, self._request, voice, self._stop)

    def give_back_meanwhile(self, voice: RunVoice) -> contextlib.AbstractContextManager[None]:
        """Give it back while inside, and wait for it again afterwards. Raises: as `obtain`."""
        return self._lender.give_back_meanwhile(self._job, self._request, voice, self._stop)


def _lease_s() -> int:
    from orchestrator.fleet.permits import LEASE_S

    return LEASE_S


class _PermitLine:
    """The session to the centre on which one permit lives: opened when needed, and anew after a cut."""

    def __init__(
        self, job: str, request: PermitRequest, fleet: "FleetOptions", identity: "FleetIdentity", lease: int
    ) -> None:
        self.request = request
        self.membership = (fleet, identity)
        self._job, self._lease = job, lease
        self._session: CentreSession | None = None
        self._permit: int | None = None
        self.cut = False  # a session was cut that may have been lent the permit, and may live for the centre
        self.lapsed = (
            False  # the centre had given the permit up when it was asked last: for a while others could have it
        )

    def anew(self) -> "_PermitLine":
        """Return a line for the same permit, once this one is given back: its session may live for the centre for a while."""
        line = _PermitLine(self._job, self.request, *self.membership, self._lease)
        line.cut = True
        return line

    def ask(self, *, taken: bool, seconds: float) -> PermitAnswer:
        """Ask within that time, connected anew where the session was cut. Raises: CentreUnreachable, CentreRefused."""
        from orchestrator.fleet.permits import ask_permit

        until = compose.monotonic() + seconds
        for again in (False, True):
            fresh = self._session is None
            left = max(0.05, until - compose.monotonic())
            try:
                session = self._session = self._session or _connect_within(*self.membership, left)
                answer = ask_permit(
                    session, self._job, self.request, taken=taken, lease_s=self._lease,
                    within=max(0.05, until - compose.monotonic()),
                )  # fmt: skip
            except CentreUnreachable:
                self.cut |= self._session is not None
                self._drop()
                if again or fresh:
                    raise
            else:
                self.lapsed = taken and self._permit is not None and answer.permit != self._permit
                self._permit = answer.permit
                return answer
        raise AssertionError("unreachable")

    def release(self, seconds: float) -> None:
        """Give the permit back, if that can be done in time; else it ends with its lease."""
        from orchestrator.fleet.permits import release_permit

        with contextlib.suppress(CentreUnreachable, CentreRefused):
            if self._session is not None and self._permit is not None:
                release_permit(self._session, self._permit, within=seconds)
        self.close()

    def close(self) -> None:
        """End the session: a permit that waits keeps its place in the queue for a while."""
        self._drop()

    def _drop(self) -> None:
        session, self._session = self._session, None
        if session is not None:
            with contextlib.suppress(Exception):
                session.close()


class _Asking:
    """The wait of one run until its permit is lent, or until it goes on without."""

    def __init__(
        self,
        line: _PermitLine,
        voice: RunVoice,
        stop: StopRequest,
        away_file: str,
        rules: CentrePermits,
        *,
        spent_s: float,
    ) -> None:
        self._prompt_s = max(0.0, PROMPT_S - spent_s)
        self._line, self._voice, self._stop = line, voice, stop
        self._away_file, self._patience_s, self._aside = away_file, rules.patience_s, rules.aside
        self._runs_elsewhere = rules.runs_elsewhere
        self._visit_patience_s = float("inf") if rules.visit_patience_s is None else rules.visit_patience_s
        self.lent = False
        self._told, self._told_at = "", float("-inf")
        self._warned = False

    def until_granted(self) -> float:
        """Ask until the permit is lent, or the centre is away for longer than the job or its visit waits. Raises: Stopped, NotNow.

        Returns: the seconds for which a run that goes on waited for the last answer, or for none: its turn in the queue is no delay by the centre.
        """
        try:
            return self._until_granted()
        except BaseException:
            self._line.close()
            raise
        finally:
            self._voice.waits("")

    def _until_granted(self) -> float:
        request, begun, away_since, tries = self._line.request, compose.monotonic(), None, 0
        if request.patience is None and (since := _away_for(self._away_file)) is not None:
            self._voice.warn(describe_absence(request, f"the centre was away {show_duration(since)} ago"))
            return 0.0
        while True:
            asked = compose.monotonic()
            try:
                answer = self._line.ask(taken=False, seconds=self._prompt_s if request.patience is None else PATIENT_S)
            except OrchestratorError as error:  # of whatever type: no run fails for want of a permit
                now = compose.monotonic()
                away_since, tries = away_since or now, tries + 1
                left = min((request.patience or 0.0) - (now - away_since), self._visit_patience_s - (now - begun))
                if left <= 0:
                    _remember_away(self._away_file)
                    waited = f" (waited {show_duration(now - begun)})" if request.patience is not None else ""
                    self._voice.warn(f"goes on without the permit {' and '.join(request.limits)}{waited}: {error.why}")
                    return now - asked if request.patience is None else 0.0
                self._show(describe_absence(request, error.why), error.why)
                pause = min(30.0, 2.0 ** min(tries, 5), left)
            else:
                _forget_away(self._away_file)
                away_since, tries = None, 0
                if not self._warned:
                    self._warned = True
                    _warn_of(answer, request, self._voice)
                if answer.granted:
                    self.lent = True
                    return compose.monotonic() - asked if request.patience is None else 0.0
                long = compose.monotonic() - begun
                waits, hint = self._show_wait(answer, long)
                pause = min(5.0, max(0.5, 0.5 * answer.place))
                if self._patience_s is not None and long > self._patience_s:
                    raise NotNow(waits, hint=hint)
            if self._stop.wait(pause * (0.75 + 0.5 * compose.random_fraction())):
                self._line.release(1.0)
                raise Stopped(self._stop.reason or "the run was asked to stop")

    def _show_wait(self, answer: PermitAnswer, waited: float) -> tuple[str, str]:
        """Show what the run waits for; return that, and what is to be done at the end of its patience. Raises: as `_show_busy`."""
        if answer.busy:
            return self._show_busy(waited), "the next run finds it free"
        text = describe_wait(answer)
        self._show(text, answer.limit + answer.opens)
        return text, "it keeps its place in the queue for two hours; poolferry fleet permits"

    def _show_busy(self, waited: float) -> str:
        """Show that the centre has another session with the permit of this job, or its place; return that. Raises: NotNow where that is no remnant.

        Why at the host: the centre hears of the end of a machine without power, or of a cut line, by its keepalives alone.
        """
        if waited >= (_CUT_S if self._line.cut else _ENDS_S):
            if self._runs_elsewhere():
                why = "another run of this job, on this host, holds its permit or waits for it"
                raise NotNow(why, hint="poolferry status")
            if waited >= _CUT_S:
                raise NotNow(
                    "the centre says that another run of this job holds its permit, or waits for it, and on this host none does",
                    hint="a copy of this machine may run it; at the centre: `poolferry fleet permits`",
                )
        elif not self._line.cut:  # it has most likely ended a moment ago
            return SEEN_SOON
        self._show(SEEN_SOON, "cut")
        return SEEN_SOON

    def _show(self, text: str, reason: str) -> None:
        """Show what the run waits for; record it when the reason is another one, or at times."""
        text += self._aside
        self._voice.waits(text)
        now = compose.monotonic()
        if reason != self._told or (text != self._told and now - self._told_at >= _TELL_S):
            self._voice.say(text)
            self._told, self._told_at = reason, now


def _warn_of(answer: PermitAnswer, request: PermitRequest, voice: RunVoice) -> None:
    for name in answer.unknown:
        voice.warn(
            f"the centre knows no limit {name}, so the run goes on without it; there: `poolferry fleet limit {name} --slots 1`"
        )
    for name in answer.clamped:
        voice.warn(f"permit-weight = {request.weight} is more than all slots of {name}: it takes all of them")


class _LeaseThread(threading.Thread):
    """The thread that keeps a permit alive during its run, claims it again after a cut, and gives it back."""

    def __init__(self, line: _PermitLine, every_s: float, voice: RunVoice) -> None:
        super().__init__(name="permit", daemon=True)
        self.line, self._every_s, self._voice = line, every_s, voice
        self._over = threading.Event()
        self._failures = 0

    def run(self) -> None:
        """Say at each beat that the run goes on; after a failure soon again, then as often as ever.

        Why no more rarely: a centre that is back lends nothing again for the time of a lease, and who holds a permit must come within it.
        """
        pause = self._every_s
        while not self._over.wait(pause):
            try:
                self.line.ask(taken=True, seconds=PATIENT_S)
                pause, self._failures = self._every_s, 0
                if self.line.lapsed and not self._over.is_set():
                    self._voice.warn(describe_lapse(self.line.request))
            except OrchestratorError:
                self._failures += 1
                pause = min(self._every_s / 4 * 2 ** min(self._failures - 1, 6), self._every_s) * (
                    0.75 + 0.5 * compose.random_fraction()
                )
        self.line.release(1.0)

    def end(self, seconds: float) -> None:
        """Give the permit back; the run's end waits for that so long at most, and not at all where the centre was away when last asked."""
        self._over.set()
        self.join(0.0 if self._failures else seconds)


def _connect_within(fleet: "FleetOptions", identity: "FleetIdentity", seconds: float) -> "CentreSession":
    """Connect within that time, however long names are looked up or the line is silent. Raises: CentreUnreachable, CentreRefused."""
    found: list[CentreSession] = []
    failed: list[BaseException] = []
    guard, too_late = threading.Lock(), threading.Event()

    def connect() -> None:
        from orchestrator.fleet.connection import open_centre
        from orchestrator.fleet.permits import SESSION_LIMITS

        try:
            session = open_centre(fleet, identity, purpose="permit", limits=SESSION_LIMITS)
        except BaseException as error:  # noqa: BLE001 - it is raised where it was waited for
            failed.append(error)
            return
        with guard:
            if not too_late.is_set():
                found.append(session)
                return
        session.close()

    thread = threading.Thread(target=connect, name="connect", daemon=True)
    thread.start()
    thread.join(seconds)
    with guard:
        too_late.set()
    if found:
        return found[0]
    if failed:
        raise failed[0]
    from orchestrator.fleet.connection import AWAY

    raise CentreUnreachable(f"the centre {fleet.centre} gives no answer within {seconds:.1f} s", hint=AWAY)


# A centre that is away is remembered for all runs of this machine by a file's time.


def _away_for(path: str) -> float | None:
    """Return how long ago the centre was found away; None: not lately."""
    try:
        ago = compose.now().timestamp() - os.stat(path).st_mtime
    except OSError:
        return None
    return ago if 0 <= ago < AWAY_S else None


def _remember_away(path: str) -> None:
    with contextlib.suppress(OSError):
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600))
        os.utime(path)


def _forget_away(path: str) -> None:
    with contextlib.suppress(OSError):
        os.unlink(path)
