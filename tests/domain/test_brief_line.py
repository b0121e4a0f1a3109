"""Test how a plan shows commands: scripts by name, nothing wider than 200 characters."""

from orchestrator.domain.command_line import brief_line, brief_text, command_line, evidence_line, pipeline_line
from orchestrator.domain.place import Host
from orchestrator.domain.plan import Command, Effect, Pipeline


def test_a_script_is_shown_by_its_name() -> None:
    argv = ("sh", "-c", "set -e\ntarget=$1\n", "publish.sh", "/backup/my photos")
    command = Command(argv=argv, effect=Effect.WRITES)
    pipeline = Pipeline(stages=(command,))
    assert brief_line(pipeline) == "publish.sh '/backup/my photos'"
    assert "target=$1" in pipeline_line(pipeline)
    far = Pipeline(stages=(Command(argv=command.argv, effect=Effect.WRITES, host=Host(name="box", user="ann")),))
    assert brief_line(far) == "ann@box: publish.sh '/backup/my photos'"


def test_no_line_is_wider_than_200() -> None:
    command = Command(
        argv=("rm", "-f", "--", *(f"/some/where/{number}" for number in range(100))), effect=Effect.WRITES
    )
    line = brief_line(Pipeline(stages=(command,)))
    assert len("     runs: " + line) == 200
    assert line.endswith("…")


def test_a_line_that_was_kept_is_shown_as_its_plan_showed_it() -> None:
    for text in ("set -e\ntarget='$1'\n", "exec true"):
        argv = ("unshare", "-m", "sh", "-c", text, "publish.sh", "/backup/my photos")
        end = Command(argv=("sh", "-c", "a b", "other"), effect=Effect.READS)
        pipeline = Pipeline(stages=(Command(argv=argv, effect=Effect.WRITES), end))
        assert brief_text(pipeline_line(pipeline)) == "unshare -m publish.sh '/backup/my photos' | sh -c 'a b' other"
    far = Command(argv=argv, effect=Effect.WRITES, host=Host(name="box", user=None))
    assert len(brief_text(pipeline_line(Pipeline(stages=(far,))))) <= 190


def test_a_failure_shows_a_script_by_its_name_and_how_its_host_is_reached() -> None:
    here = Command(argv=("sh", "-c", "set -e\n", "publish.sh", "a b"), effect=Effect.WRITES)
    there = Command(argv=here.argv, effect=Effect.WRITES, host=Host(name="box", user="ann"))
    assert evidence_line(here) == "publish.sh 'a b'"
    told = evidence_line(there, ("-F", "/etc/own"))
    assert told.startswith("ssh ")
    assert "-F /etc/own" in told
    assert told.endswith(" -l ann -- box: publish.sh 'a b'")
    plain = Command(argv=("rsync", "-a"), effect=Effect.WRITES, host=Host(name="box", user=None))
    assert evidence_line(plain) == command_line(plain)
