"""The decision after a survey of a pool: a failure, a scrub to start, pause or resume, or a healthy pool."""

from datetime import datetime

from orchestrator.domain.age import is_older, show_age
from orchestrator.domain.job import Job
from orchestrator.domain.plan import Decision, NothingToDo, Pipeline, Plan, Refusal, Step
from orchestrator.domain.run import Outcome
from orchestrator.domain.source_identity import SOURCE_IDENTITY, parse_identity
from orchestrator.domain.units import show_count, show_duration
from orchestrator.engines.contract.engine import RunRequest
from orchestrator.engines.pool import commands
from orchestrator.engines.pool.health_checks import judge_health
from orchestrator.engines.pool.model import PoolFinding, PoolScan, PoolSurvey, ScrubState
from orchestrator.engines.pool.options import PoolOptions, options_of

_NAMED = 20  # lost files


def plan(job: Job, world: PoolSurvey, request: RunRequest) -> Decision:
    """Return the decision after one survey. `request`: by what it remembers the pool is known; scans are timed by the pool's own machine."""
    options = options_of(job)
    found = judge_health(world, options)
    grave = tuple(finding for finding in found if finding.grave)
    advice = (*_other_pool(world, request), *(str(finding) for finding in found if not finding.grave))
    if grave:
        return _failed(grave, advice, world.status.damaged)
    due = explain_due_scrub(world, options)
    busy = world.at_work and not is_scrub_overdue(world, options)
    scan = world.status.scan
    match scan.state if scan else "":
        case "running" if scan and scan.kind == "scrub" and busy and options.scrub_every is not None:
            return _plan(_step(world, pause=True, why=f"{world.at_work[0]} goes first"), advice)
        case "paused" if options.scrub_every is not None:
            due = "a paused scrub is resumed"
        case "running":
            due = ""
    if due and busy:
        return _wait(world, due, advice)
    if due:
        return _plan(_step(world, pause=False, why=due), advice)
    return NothingToDo(why=describe_sound_pool(world), current=world.root.path, warnings=advice)


def _other_pool(world: PoolSurvey, request: RunRequest) -> tuple[str, ...]:
    """Return a warning about a pool that is not the one of the last good run, once: from then on it is the one that is known."""
    known = parse_identity(request.remembered.get(SOURCE_IDENTITY, ""))
    if known is None or known.root != str(world.root) or not known.pool or str(known.pool) == world.guid:
        return ()
    return (
        (
            f"{world.root} is another pool than at the last run: its guid was {known.pool} and is {world.guid}; it was made anew, or `zpool reguid` "
            "gave it another one"
        ),
    )


def explain_due_scrub(world: PoolSurvey, options: PoolOptions) -> str:
    """Return why a scrub is due; empty: none is due, or this job starts none.

    Why also after a resilver: it reads only the data of the new disk, and ZFS forgets the scan before it.
    """
    every, scan = options.scrub_every, world.status.scan
    if every is None:
        return ""
    if scan is None:
        return "it was never scrubbed"
    if scan.state != "finished" or scan.kind != "scrub" or scan.ended is None:
        return f"the last {scan.kind} was cancelled" if scan.state == "canceled" else f"the last scan was a {scan.kind}"
    if not is_older(scan.ended, every, world.at):
        return ""
    return f"the last scrub ended {show_age(scan.ended, world.at)}; scrub-every is {show_duration(every)}"


def is_scrub_overdue(world: PoolSurvey, options: PoolOptions) -> bool:
    """Return True when a scrub no longer waits for transfers, as it is later than scrub-late."""
    scan = world.status.scan
    last = scan.ended or scan.began if scan else None
    return last is not None and is_older(last, options.scrub_late, world.at)


def describe_sound_pool(world: PoolSurvey) -> str:
    """Return one line about a healthy pool."""
    scan = world.status.scan
    return f"{world.status.name} is sound, {world.whole.share:.0%} full; {_describe_scan(scan, world.at)}"


def _describe_scan(scan: PoolScan | None, now: datetime) -> str:
    if scan is None:
        return "never scrubbed"
    if scan.ended is not None:
        ended = show_age(scan.ended, now)
        return (
            f"the last {scan.kind} was cancelled {ended}"
            if scan.state == "canceled"
            else f"the last {scan.kind} ended {ended}"
        )
    done = f", {scan.share:.0%} done" if scan.share is not None else ""
    left = _left(scan, now)
    told = f", about {show_duration(left)} left" if left is not None else ""
    return f"a {scan.kind} {'is paused' if scan.state == 'paused' else 'is running'}{done}{told}"


def _left(scan: PoolScan, now: datetime) -> float | None:
    """Return the remaining seconds of a scan: ZFS's own number, else an estimate from its speed. None: unknown."""
    if scan.left is not None or scan.state != "running" or scan.began is None or not scan.share:
        return scan.left
    return (now - scan.began).total_seconds() * (1 - scan.share) / scan.share


def _failed(grave: tuple[PoolFinding, ...], advice: tuple[str, ...], damaged: tuple[str, ...]) -> Refusal:
    more = f"; and {show_count(len(grave) - 1, 'more finding')}" if len(grave) > 1 else ""
    names = tuple(f"damaged: {name}" for name in damaged[:_NAMED])
    evidence = (*(str(finding) for finding in grave[1:]), *names, *(f"advice: {line}" for line in advice))
    return Refusal(why=f"{grave[0].says}{more}", evidence=evidence, hint=grave[0].hint, outcome=Outcome.FAILED)


def _wait(world: PoolSurvey, due: str, advice: tuple[str, ...]) -> Refusal:
    """Return a refusal with the outcome "waiting": daemon and cron try again."""
    return Refusal(
        why=f"{world.status.name} is sound; its scrub waits until nothing is at work there ({due})",
        evidence=(*(f"at work: {each}" for each in world.at_work), *(f"advice: {line}" for line in advice)),
        hint="it begins by itself once they have ended, and at the latest after scrub-late",
        outcome=Outcome.WAITING,
    )


def _plan(step: Step, advice: tuple[str, ...]) -> Plan:
    return Plan(summary=step.action, stages=((step,),), warnings=advice)


def _step(world: PoolSurvey, *, pause: bool, why: str) -> Step:
    root = world.root
    going = world.status.scan is not None and world.status.scan.state == "paused"
    action = f"pause the scrub of {root}" if pause else f"go on with the scrub of {root}" if going else f"scrub {root}"
    work = Pipeline(stages=(commands.scrub_command(root, pause=pause),))
    confirmation = ScrubState(root=root, since=world.at, paused=pause)
    return Step(action=action, why=why, worker="main", work=work, expected=None, confirmation=confirmation)
