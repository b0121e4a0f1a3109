"""Each parser of the program is reached by a door that is fuzzed, or reads what a person types or we ourselves wrote."""

import ast
import gzip
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from types import FrameType

from orchestrator.domain.errors import OrchestratorError
from tests.hostile.answers import LINE, LINK, TARGETS, manifest
from tests.hostile.notes_and_streams import MORE, a_history, read_files, read_history

PROGRAM = Path(__file__).parents[2] / "orchestrator"
# What takes text or bytes of an unknown form apart.
CALLS = set(
    "a2b_base64 decompress from_bytes fromhex fromisoformat iter_unpack load loads strptime unpack unpack_from".split()
)


def parsers() -> Iterator[tuple[str, str]]:
    """The file and the name of each function that is a parser by its name, or by what it calls."""
    for file in sorted(PROGRAM.rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_bytes())):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                called = {
                    each.func.attr
                    for each in ast.walk(node)
                    if isinstance(each, ast.Call) and isinstance(each.func, ast.Attribute)
                }
                if node.name.lstrip("_").startswith("parse") or called & CALLS:
                    yield str(file), node.name


def reached(tmp_path: Path) -> set[tuple[str, str]]:
    """The file and the name of each function that runs when the doors read their samples."""
    seen: set[tuple[str, str]] = set()

    def note(frame: FrameType, event: str, _: object) -> None:
        if event == "call":
            seen.add((frame.f_code.co_filename, frame.f_code.co_name))

    whole = tmp_path / "manifest"
    whole.write_bytes(gzip.compress(manifest(LINE + LINK)))
    history = tmp_path / "history.sqlite"
    history.write_bytes(a_history(tmp_path))
    sys.setprofile(note)
    try:
        for target in TARGETS + MORE:
            for sample in target.samples:
                with suppress(OrchestratorError):  # a sample of one question is the answer to all
                    target.read(sample)
        read_files(whole)
        read_history(history)
    finally:
        sys.setprofile(None)
    return seen


# What a person types, in a file of hers, on a command line or in a page: each mistake is told to her.
TYPED = """
app.gate_setup._parse_key cli.fleet.quota._parse_most cli.fleet.send._parse_every cli.fleet.watch._parse_span cli.terminal.options.parse_args
cli.terminal.plain_lines._parse_plain cli.terminal.plain_lines.parse_gate_call
config.migrate.syncoid.parse_pattern config.migrate.syncoid.parse_special
config.migrate.time_span.parse_calendar config.models._parse_limit_name config.models._parse_permit_away
config.models.parse_job_name
config.sets.parse_file config.times.parse_spread domain.authentication.parse_uses domain.fleet.parse_centre
domain.gate.parse_gate_dataset domain.gate.parse_gate_folder domain.gate.parse_pool_id domain.job.parse_amount
domain.job.parse_promise domain.job.parse_scratch domain.job.parse_window
domain.machine._parse_centre domain.machine._parse_pem_path domain.machine.parse_folder domain.machine.parse_listen
domain.machine.parse_textfile domain.notice.parse_hour domain.notice.parse_server domain.permit.parse_limit_name
domain.permit.parse_permit_away domain.schedule.parse_normal_schedule
"""
# What the kernel says, or what this program has made just now.
MADE_NOW = """
app.gate._write_arrivals config.schema.example_of daemon.control_socket.read_caller engines.zfs.plan.transport.choose_connections
process.mounted.parse_mount
engines.zfs.recovery.kit.kit_for_place process.forks._serve process.forks.heard process.handover._receive process.input_limit._came
process.input_limit._is_taken process.input_limit._read_stream process.recorded_answers._unpacked trees.beneath._listed_writers trees.linked_tree._helped
web.guard._kernel_address
"""
# Values of the history, which compares them as it reads (test_bit_flips.py, test_history_values.py); and calls of doors above.
HISTORY = """
app.kit_disk._moved cli.kit.kit engines.zfs.engine.survey_lost_rights history.database.history_mark history.notification_queue._day
history.renames.rename runner.verify.read_budget._read verify.check_entry._nanoseconds views.notices.notice_value
views.run_history._attempt_value views.run_page._decision
"""
NEEDS_NONE = {*TYPED.split(), *MADE_NOW.split(), *HISTORY.split()}


def test_each_parser_is_behind_a_door(tmp_path: Path) -> None:
    unseen = set(parsers()) - reached(tmp_path)
    found = {f"{Path(file).relative_to(PROGRAM).with_suffix('')}.{name}".replace("/", ".") for file, name in unseen}
    assert found - NEEDS_NONE == set(), "add a door to notes_and_streams.py, or say here who wrote what it reads"
    assert NEEDS_NONE - found == set(), "it is behind a door, or gone"
