"""`restore pool`: destroy and recreate a pool in steps; the same command continues at the right step."""

import re
import shlex
from collections.abc import Callable, Mapping, Sequence

from orchestrator import compose
from orchestrator.app import pool_evacuation as evacuating
from orchestrator.app import pool_rebuild as rebuilding
from orchestrator.app.attached_disks import AttachedDisks
from orchestrator.app.kit_disk import accept_kit_disk
from orchestrator.app.next_base import find_next_bases
from orchestrator.app.pool_evacuation import EvacuationSurvey
from orchestrator.app.renamed_pool import RenamedSettings, rename_in_configuration
from orchestrator.app.restored_sources import note_restore
from orchestrator.app.session import Session, open_session
from orchestrator.app.settings import Settings, WrongRequest, unheard
from orchestrator.domain.evacuation import DatasetStatus, KitFacts
from orchestrator.domain.fast_dataclass import dataclass, replace
from orchestrator.domain.job import Job
from orchestrator.domain.place import Location
from orchestrator.domain.renamed_dataset import give_name_back
from orchestrator.domain.run import Outcome, RunReport
from orchestrator.planners.evacuation import refuse_evacuation, refuse_guests
from orchestrator.runner.restore.request import RestoreOptions
from orchestrator.runner.restore.restore import run_restore
from orchestrator.views.pool_rebuild import RebuildEnd, RebuildPart, RebuildStep, evacuation_lines, part_told
from orchestrator.views.restore import TargetNextBase, next_base_lines

_POOL_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_.-]*")


def rebuild_pool(
    settings: Settings,
    name: str,
    *,
    new_name: str | None = None,
    plan: bool = False,
    aside: bool = False,
    lose: Sequence[str] = (),
    trust: Sequence[str] = (),
    content: bool = False,
    lost_keys: Sequence[str] = (),
    hears: Callable[[RebuildStep], None] = unheard,
) -> RebuildEnd:
    """Continue the rebuild of the pool as far as possible now. `plan`: only look.

    `new_name`: the pool comes back under this name; `aside`: what has a dataset's name is renamed, and kept. `lose`, `trust`:
    datasets that may be lost, and disks that are away; `lost_keys`: datasets whose keys are lost. `hears`:
    receives each step. Raises: WrongRequest, OrchestratorError.
    """
    known = {disk.name for rotation in settings.configuration().sets for disk in rotation.disks}
    if strange := [disk for disk in trust if disk not in known]:
        raise WrongRequest(f"--trust {strange[0]}: targets.toml declares no disk of that name")
    if new_name == name:
        raise WrongRequest(f"--as {new_name}: expected another name than the pool has")
    if new_name is not None and not _POOL_NAME.fullmatch(new_name):
        raise WrongRequest(f"--as {new_name}: expected the name of a pool, such as tank2")
    used = RenamedSettings(settings, name, new_name) if new_name else settings
    asked = _PoolRequest(
        name=new_name or name,
        former=name,
        lose=tuple(lose),
        trust=tuple(trust),
        lost_keys=tuple(lost_keys),
        content=content,
        aside=aside,
    )
    if plan:
        with AttachedDisks(used, None) as stays:
            return _Rebuild(used, None, stays, asked, hears).end()
    with open_session(settings) as session, AttachedDisks(used, session, asked.typed) as stays:
        session.history.heal(compose.is_process_alive, compose.now())
        accept_kit_disk(settings, session)
        end = _Rebuild(used, session, stays, asked, hears).end()
        stays.settle(over=end.outcome in (Outcome.DONE, Outcome.REFUSED))
        return end


@dataclass(frozen=True, slots=True, kw_only=True)
class _PoolRequest:
    """A person's request. `name`: of the pool that comes back; `former`: the name that it had, mostly the same."""

    name: str
    former: str
    lose: tuple[str, ...]
    trust: tuple[str, ...]
    lost_keys: tuple[str, ...]
    content: bool
    aside: bool

    @property
    def typed(self) -> str:
        """Return the command line of this request."""
        named = (
            *(("--as", self.name) if self.name != self.former else ()),
            *(word for option, names in (("--lose", self.lose), ("--trust", self.trust), ("--lost-key", self.lost_keys))
              for name in names for word in (option, name)),
            *(("--aside",) if self.aside else ()), *(("--content",) if self.content else ()),
        )  # fmt: skip
        return shlex.join(("poolferry", "restore", "pool", self.former, *named))


class _Rebuild:
    """One call of the rebuild. Without a session nothing is changed."""

    def __init__(
        self, settings: Settings, session: Session | None, stays: AttachedDisks, asked: _PoolRequest,
        hears: Callable[[RebuildStep], None],
    ) -> None:  # fmt: skip
        self._settings, self._session, self._stays, self._asked = settings, session, stays, asked
        self._name, self._lose = asked.name, asked.lose
        self._since, self._hears = compose.now(), hears
        self._steps: list[RebuildStep] = []
        self._datasets: tuple[DatasetStatus, ...] | None = None
        self._next: tuple[str, ...] | None = None
        self._found: tuple[RebuildPart, ...] | None = None
        self._differences: tuple[str, ...] | None = None
        self._links: tuple[TargetNextBase, ...] | None = None
        self._anew: tuple[str, ...] | None = None

    def end(self) -> RebuildEnd:
        """Continue as far as possible and return the end."""
        outcome = self._go_on()
        return RebuildEnd(
            pool=self._name, outcome=outcome, steps=tuple(self._steps), datasets=self._datasets, next=self._next,
            parts=self._found, differences=self._differences, links=self._links, anew=self._anew,
        )  # fmt: skip

    def _step(self, number: int, title: str, state: str, lines: Sequence[str] = ()) -> None:
        self._steps.append(RebuildStep(number=number, title=title, state=state, lines=tuple(lines)))
        self._hears(self._steps[-1])

    def _go_on(self) -> Outcome:
        with self._settings.views() as views:
            known = views.rebuilds.of(self._name)
            before = None if known or not self._renames else views.rebuilds.of(self._asked.former)
            kits = dict(known.kits) if known else self._renamed(before.kits) if before else {}
            self._since = known.begun_at if known else compose.now()
            files = rebuilding.datasets_of_kits(kits)
            here = evacuating.survey_evacuation(self._settings, self._name, views, self._stays, files)
            kits = kits or self._renamed(rebuilding.remembered_kits(here, views))
        told = rebuilding.read_kit_facts(self._name, kits)
        self._lose = tuple(dict.fromkeys((*self._lose, *(known.lost if known else ()))))
        if here.pool.guid is not None and not rebuilding.is_new_pool(here, known, told):
            return self._old(here)
        if not told:
            self._step(1, "check that all of it is elsewhere", "unknown", ["no kit says how the pool was made"])
            return Outcome.REFUSED
        if self._session is not None and known is None:
            tops = {one.top_guid for one in told.values()} - {None}
            self._session.history.rebuilds.keep(
                self._name, top_guid=min(filter(None, tops), default=None), lost=self._lose, kits=kits, now=compose.now()
            )  # fmt: skip
        how = "it is gone already, and came to be known from its kits"
        if self._renames:
            how = f"{self._asked.former} is not touched: it comes back as {self._name}, as its kits know it"
        moved = self._find_renamed(told) if here.pool.guid is None and not self._renames else ()
        self._step(1, "check that all of it is elsewhere", how if not moved else "look first", moved)
        if here.pool.guid is None:
            return self._to_make(rebuilding.commands_to_create(self._name, told, there=False))
        return self._bring_back(here, kits, told)

    def _find_renamed(self, told: Mapping[str, KitFacts]) -> tuple[str, ...]:
        """Return lines on a pool that is imported under another name, and is the very one that its kits tell of; none: it is not."""
        from orchestrator.process.executor import Reader
        from orchestrator.process.moved_dataset import find_moved_dataset

        reader = Reader(log=self._settings.log)
        tops = {one.top_guid for one in told.values() if one.top_guid}
        looks = (find_moved_dataset(top, 0, Location(path=self._name), reader) for top in sorted(tops))
        found = next((each for each in looks if each.name), None)
        if found is None or "/" in found.name:
            return ()
        return (
            f"{self._name} is imported as {found.name} now, by its guid: nothing of it is lost",
            f"to give it its name back, in place of all that follows: {give_name_back(self._name, found, None)}",
        )

    @property
    def _renames(self) -> bool:
        return self._name != self._asked.former

    @property
    def _creation(self) -> str:
        return f"create {self._name}" if self._renames else "destroy it, and create it again"

    def _renamed(self, kits: Mapping[str, str]) -> dict[str, str]:
        """Return the kits by the pool's new name; its files keep their paths when the former pool is gone."""
        if not self._renames:
            return dict(kits)
        former = self._asked.former
        gone = evacuating.survey_pool(self._settings, former).guid is None
        return rebuilding.rename_kits(kits, former, self._name, keep_paths=gone)

    # Before the pool is destroyed.

    def _old(self, here: EvacuationSurvey) -> Outcome:
        leaving = evacuating.judge_copies(here, self._lose, self._asked.trust)
        self._datasets = tuple(leaving.standings)
        own = evacuating.refuse_own_place(self._settings, here.pool)
        lost, guests = refuse_evacuation(here.pool, leaving), refuse_guests(here.pool)
        if refusals := [each for each in (lost, guests, own) if each is not None]:
            lines = evacuation_lines(leaving)
            for each in refusals:  # the lines of the datasets show the data that would be lost
                lines += [each.why, *(() if each is lost else each.evidence), f"what to do: {each.hint}"]
            self._step(1, "check that all of it is elsewhere", "no", lines)
            return Outcome.REFUSED
        self._step(1, "check that all of it is elsewhere", "yes", evacuation_lines(leaving))
        kits = self._remember(here)
        return self._to_make(
            rebuilding.commands_to_create(self._name, rebuilding.read_kit_facts(self._name, kits), there=True)
        )

    def _remember(self, here: EvacuationSurvey) -> dict[str, str]:
        if self._session is None:
            with self._settings.views() as views:
                return rebuilding.remembered_kits(here, views)
        kits = rebuilding.fresh_kits(self._settings, here, self._session.history)
        self._session.history.rebuilds.keep(
            self._name, top_guid=here.pool.guid, lost=self._lose, kits=kits, now=compose.now()
        )
        return kits

    def _to_make(self, lines: Sequence[str]) -> Outcome:
        after = "then run the same command again; put in other disks where you want them (ls -l /dev/disk/by-id)"
        self._step(2, self._creation, "your turn", [*lines, after])
        self._next = tuple(lines)
        return Outcome.DONE if self._session is None else Outcome.WAITING

    # After the pool is destroyed.

    def _bring_back(self, here: EvacuationSurvey, kits: dict[str, str], told: dict[str, KitFacts]) -> Outcome:
        self._step(2, self._creation, "done")
        if lines := rebuilding.missing_dataset_lines(here, told):
            return self._to_make(lines)
        code, found = self._parts(here, told)
        self._found = tuple(found)
        if (
            code not in (Outcome.DONE, Outcome.WAITING)
            or self._session is None
            or any(part.job is None for part in found)
        ):
            return code
        made = rebuilding.survey_kits(self._settings, here)
        lines = rebuilding.find_differences(self._settings, here, kits, made, self._lose)
        self._differences = tuple(lines)
        self._step(4, "is it as it was", f"{len(lines)} differences" if lines else "yes", lines)
        self._chains(here)
        if self._renames and not any("not there" in line for line in lines):
            plain = Settings(config=self._settings.config, state=self._settings.state)
            self._step(
                6, f"name {self._name} in the jobs", *rename_in_configuration(plain, self._asked.former, self._name)
            )
        if any("not there" in line for line in lines):
            return Outcome.FAILED
        if code is Outcome.WAITING:
            return code
        rebuilding.save_kits(self._session.history, made)
        for name in {self._name, self._asked.former}:
            self._session.history.rebuilds.end(name, compose.now())
        return Outcome.DONE

    def _parts(self, here: EvacuationSurvey, told: dict[str, KitFacts]) -> tuple[Outcome, list[RebuildPart]]:
        """Restore each source in turn, until one cannot be restored now; return the exit code and the parts.

        A part that waits for a key or a mountpoint holds up no other.
        """

        def found() -> tuple[RebuildPart, ...]:
            with self._settings.views() as views:
                return rebuilding.plan_parts(
                    here, told, lambda job: rebuilding.were_files_restored(job, views, self._since)
                )

        for part in found():
            if not part.mounted:
                self._step(3, f"bring {part.source} back", *part_told(part))
                return Outcome.WAITING, [part]
        ends, told_more, code = list[RebuildPart](), list[str](), Outcome.DONE
        for place, _ in enumerate(found()):
            part = found()[place]
            if self._session is not None and not part.back and part.job is not None:
                report = self._restore(self._session, part.job, part.source, rebuilding.mounts_of_datasets(here))
                here = replace(here, pool=evacuating.survey_pool(self._settings, self._name))
                part = found()[place]
                if report.outcome is not Outcome.DONE or not part.back:
                    told_why = dict.fromkeys(filter(None, (report.why, *report.warnings, report.hint)))
                    self._step(3, f"bring {part.source} back", report.outcome.value, list(told_why))
                    ends.append(part)
                    if report.outcome is not Outcome.WAITING:
                        return Outcome.FAILED if report.outcome is not Outcome.DONE else Outcome.WAITING, ends
                    code = Outcome.WAITING
                    continue
                told_more = list(report.warnings)
            ends.append(part)
            state, lines = part_told(part)
            self._step(3, f"bring {part.source} back", state, [*lines, *told_more])
            told_more = []
            if part.job is None:
                return Outcome.WAITING, ends
        return code, ends

    def _restore(self, session: Session, job: Job, source: Location, stays: tuple[str, ...]) -> RunReport:
        below = f"{source.path}/"
        lost = tuple(name for name in self._asked.lost_keys if f"{name}/".startswith(below))
        report = session.do(
            job, run_restore,
            RestoreOptions(to=source, content=self._asked.content, stays=stays, owners=False, lost_keys=lost, aside=self._asked.aside, typed=self._asked.typed),
        )  # fmt: skip
        note_restore(session.history, lambda: self._settings.configuration().jobs, job, source, report, compose.now())
        self._stays.did(job.target.disk, report)
        return report

    def _chains(self, here: EvacuationSurvey) -> None:
        found = find_next_bases(self._settings, Location(path=self._name))
        self._links = found
        anew = [
            f"{job.name} to {job.target.name}: its copies lay here; `poolferry run {job.name}` sends them again in full"
            for job in here.homes
        ]
        self._anew = tuple(job.name for job in here.homes)
        lines = [line.strip() for line in next_base_lines(found)]
        self._step(5, "what the next runs go on from", "told", [*lines, *anew])
