"""Test what `check --system` says of programs and places, by scripted answers."""

import pytest

from orchestrator.domain.place import Location
from orchestrator.engines.contract.engine import SystemCheckResult
from orchestrator.engines.rsync.commands import rsync_version_command
from orchestrator.engines.rsync.script_commands import (
    survey_filesystem_command,
    survey_links_command,
    survey_source_command,
    survey_target_command,
    survey_tools_command,
)
from orchestrator.engines.rsync.system_check import check_system, try_key_command, try_removal_command
from orchestrator.process.pipeline import PipelineResult
from orchestrator.process.scripted import ScriptedExecutor, scripted_result
from tests.engines.rsync.builders import HOST, OLD, ROOT, THERE, job

VERSION = '{"version": "%s", "protocol": "32.0", "checksum_list": ["xxh128"], "compress_list": ["zstd"]}'
RENAMED = (
    '; or, if the file of that job was renamed by hand: write known-as = "mail" before the first section of photos.toml'
)
MARKED = b'd\x001024 4096 9 8\n\x00{"job": "photos"}\x00u d 2\x00h d 1\x00p d %b\x00' % OLD.encode()


def version(text: str) -> PipelineResult:
    return scripted_result((VERSION % text).encode())


def found(
    *,
    here: PipelineResult | None = None,
    there: PipelineResult | None = None,
    source: PipelineResult | None = None,
    target: PipelineResult | None = None,
    tools: bytes = b"",
    filesystem: PipelineResult | None = None,
    key: PipelineResult | None = None,
    links: bytes = b"closed\n",
    stored: bool = False,
) -> dict[str, SystemCheckResult]:
    """The advice by its subject; whatever is not told is well."""
    told = job(target=THERE, fake_super=stored) if there else job()
    script = [
        (str(rsync_version_command(None)), here or version("99.0.0")),
        (str(rsync_version_command(HOST)), there or version("99.0.0")),
        (str(try_key_command(HOST)), key or scripted_result()),
        (str(try_removal_command(told)), key or scripted_result()),
        (str(survey_tools_command(None)), scripted_result(tools)),
        (str(survey_tools_command(HOST)), scripted_result()),
        (str(survey_links_command(None)), scripted_result(links)),
        (str(survey_links_command(HOST)), scripted_result(b"user\n")),
        (str(survey_source_command(told.tree, whole=True)), source or scripted_result(b"d 1 0 755\n2 0 755\0x\0")),
        (str(survey_target_command(told.target.location)), target or scripted_result(MARKED)),
        (str(survey_filesystem_command(told.target.location)), filesystem or scripted_result(b"0\next4\n")),
    ]
    return {each.subject: each for each in check_system(told, ScriptedExecutor(script))}


def test_all_is_well() -> None:
    advice = found(there=version("99.0.0"))
    assert all(each.good for each in advice.values())
    assert {subject: each.text for subject, each in advice.items()} == {
        "rsync here": "version 99.0.0",
        "rsync on root@backup": "version 99.0.0",
        "link to root@backup": "compression: --compress --compress-choice=zstd --compress-level=1",
        "key at root@backup": "may do anything there, so whoever takes over this machine can remove the copies; "
        "`poolferry setup gate photos --adds /backup/photos` there lets it only add to them",
        "source /srv/photos": "is there, a filesystem of its own",
        f"target {THERE}": "holds 1 point, 4.0 MiB free",
    }


def test_no_gate_is_advised_where_it_would_refuse_the_job() -> None:
    advice = found(there=version("99.0.0"), stored=True)
    assert advice["key at root@backup"].text.endswith("whoever takes over this machine can remove the copies")


def test_a_key_that_goes_through_a_gate() -> None:
    said = "poolferry gate vault: refused: it was asked for `true` (poolferry 1.0)"
    advice = found(there=version("99.0.0"), key=scripted_result(exits=(126,), words=said))
    assert advice["key at root@backup"].text == "append-only: tried to remove a point, and the gate vault refused"
    other = found(
        there=scripted_result(exits=(1,), words="/usr/bin/rrsync error: SSH_ORIGINAL_COMMAND does not run rsync")
    )
    assert other["rsync on root@backup"].text.startswith("our key goes through rrsync there")


def test_a_target_where_nothing_can_be_written() -> None:
    for user, why in (
        ("0", "it is mounted read-only"),
        ("1234", "user 1234 may not write there, or it is mounted read-only"),
    ):
        told = found(filesystem=scripted_result(f"{user}\next4\nro\n".encode()))[f"target {ROOT}"]
        assert (told.good, told.hinders) == (False, True)
        assert told.text.startswith(f"nothing can be written: {why}; `findmnt -T "), told
    assert found(filesystem=scripted_result(exits=(1,)))[f"target {ROOT}"].good, "the first run says it"


def test_a_program_that_is_none_or_cannot_be_asked() -> None:
    assert not found(here=scripted_result(b"openrsync"))["rsync here"].good
    gone = found(there=scripted_result(exits=(255,), words="ssh: connect to host backup port 22: Connection refused"))
    assert not gone["rsync on root@backup"].good
    assert gone["rsync on root@backup"].text.startswith("the host did not answer")
    assert "link to root@backup" not in gone
    assert gone["source /srv/photos"].good  # one failure hides no other


def test_programs_that_are_missing_or_not_gnus_are_named() -> None:
    wrong = found(tools=b"find\nstat\ngetfattr\n")["programs here"]
    assert (wrong.good, wrong.hinders) == (False, True)
    assert wrong.text.startswith("missing, or not GNU's (BusyBox?): find, stat: ")
    less = found(tools=b"getfattr\n")["programs here"]
    assert (less.good, less.hinders) == (False, False)
    assert "apt install attr" in less.text


def test_a_machine_where_links_lead_rsync_on_is_named() -> None:
    told = found(links=b"open\n")["links in trees here"]
    assert (told.good, told.hinders) == (False, False)
    assert "Linux 5.14" in told.text
    assert "links in trees here" not in found(links=b"")


@pytest.mark.parametrize(
    ("told", "loses"),
    [
        (b"0\next4\n", ""),
        (b"0\nexfat\n", "exfat there cannot hold owners, modes, links, attributes and some names"),
        (b"0\nfuse.sshfs\n", "fuse.sshfs there cannot hold owners and attributes"),
        (b"1000\next4\n", "user 1000 there cannot hold owners other than its own"),
        (b"?", ""),
    ],
)
def test_what_a_new_target_is_known_to_lose(told: bytes, loses: str) -> None:
    new = scripted_result(b"ap\0i plain 0\0" + b"1024 4096 9 8\n")
    subject = f"target {ROOT}"
    advice = found(target=new, filesystem=scripted_result(told))[subject]
    assert (advice.good, advice.text.startswith(loses or "will be made")) == (not loses, True), advice
    assert not advice.hinders or advice.good
    assert found(filesystem=scripted_result(told))[subject].good, "a target with points was asked"


@pytest.mark.parametrize(("text", "holes"), [("3.2.7", 3), ("3.4.1", 2), ("3.4.3", 1), ("3.5.0", 0)])
def test_known_holes_are_advice(text: str, holes: int) -> None:
    advice = found(here=version(text))["rsync here"]
    assert advice.text.startswith(f"version {text}")
    assert (advice.text.count(";") + 1 if "holes" in advice.text else 0) == holes


@pytest.mark.parametrize(
    ("text", "good", "says"),
    [
        (b"a\0", False, "is not there"),
        (b"f\0", False, "is not a folder"),
        (b"d 1 0 755\n1 0 755\0\0", False, "is empty: is it mounted?"),
        (b"d 1 0 755\n1 0 755\0x\0", True, "is there"),
    ],
)
def test_the_source(text: bytes, good: bool, says: str) -> None:
    advice = found(source=scripted_result(text))["source /srv/photos"]
    assert (advice.good, advice.text) == (good, says)


@pytest.mark.parametrize(
    ("text", "good", "says"),
    [
        (b"ap\0", True, "will be made by the first run"),
        (b"a\0", False, "is not there, and neither is the folder above it"),
        (
            MARKED.replace(b"photos", b"mail"),
            False,
            f"belongs to the job mail: give each a place of its own{RENAMED}",
        ),
        (MARKED.replace(b"u d 2", b"u d 1"), True, "holds 1 point, 4.0 MiB free, not a filesystem of its own"),
    ],
)
def test_the_target(text: bytes, good: bool, says: str) -> None:
    advice = found(target=scripted_result(text))["target /backup/photos"]
    assert (advice.good, advice.text) == (good, says)


def test_a_source_on_a_host_is_asked_there() -> None:
    told = job(source=Location(path="/srv/photos", host=HOST))
    script = ScriptedExecutor([(lambda _: True, scripted_result(exits=(127,), words="sh: 1: rsync: not found"))])
    check_system(told, script)
    assert [pipeline.stages[0].host for pipeline in script.requested] == [None, HOST, HOST, None]
