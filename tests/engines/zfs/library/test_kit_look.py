"""The look for a recovery kit with answers of the library, and as before where these fail."""

import re
from pathlib import Path

import pytest

from orchestrator.domain.place import Location
from orchestrator.domain.plan import Command, Effect
from orchestrator.engines.zfs.recovery.kit import kit_command
from orchestrator.process.scripts import script
from tests.engines.zfs.script_runner import run

# Datasets t, t/a and t/a/b; t/a@1 is held, rights are delegated on t/a.
ZFS = """
echo "$*" >> LOG
case "$*" in
*userrefs*) printf "%s\\t7\\t8\\t%s\\n" t - t/a - t/a/b - t/a@1 1 t/a@2 0;;
list*) printf "%s\\t7\\t8\\n" t t/a t/a/b t/a@1 t/a@2;;
holds*) printf "t/a@1\\tkeep\\t1\\n";;
allow*) echo "rights of $2";;
*"-o name,property,source all"*) printf "%s\\ttype\\t-\\n%s\\tcopies\\tlocal\\n%s\\tatime\\tdefault\\n" t t t t/a t/a t/a;;
*"value,source "*) printf "t\\t%s\\t2\\tlocal\\n" $(echo "$6" | tr , " ");;
*"value,received,source "*) printf "t\\t%s\\t2\\t3\\tlocal\\n" $(echo "$6" | tr , " ");;
esac
"""
ANSWERS = """ask_library() {
  cat > ASKED
  printf "%s\\t%s\\n" received copies granted t/a held "t/a@1	kept	5"
}
"""


def looked(tmp_path: Path, before: str) -> tuple[str, list[str]]:
    """The answer, and what zfs was asked."""
    log = tmp_path / "log"
    (command,) = (kit_command(Location(path="t")),)
    text = command.argv[2].replace("#!/bin/sh", before.replace("ASKED", f"{tmp_path}/asked") + "#!/bin/sh", 1)
    command = Command(argv=(*command.argv[:2], text, *command.argv[3:]), effect=Effect.READS)
    programs = {"zpool": "printf '7\\tx\\n'", "zdb": ":", "find": ":", "getent": ":"}
    done = run(command, tmp_path, programs | {"zfs": ZFS.replace("LOG", str(log))})
    assert (done.returncode, done.stdout.count("\n=end\n")) == (0, 1), done
    return done.stdout, log.read_text().splitlines()


def test_rights_are_asked_where_some_were_delegated_and_holds_of_no_list(tmp_path: Path) -> None:
    told, asked = looked(tmp_path, ANSWERS)
    assert re.findall(r"^rights of (.*)$", told, re.MULTILINE) == ["t/a"]
    assert "=holds\nt/a@1\tkept\t5\n=allowed\n" in told
    assert "t/a@1\t7\t8\nt/a@2\t7\t8\n=holds" in told
    assert (tmp_path / "asked").read_text().split() == ["t", "t", "t/a", "t/a/b", "t/a@1", "t/a@2"], (
        "what lies above, too"
    )
    assert set(re.findall(r"value,received,source (\S+)", "\n".join(asked))) == {"copies"}
    assert [line for line in asked if "userrefs" in line or line.startswith("holds")] == []


@pytest.mark.parametrize("before", ["", "ask_library() { cat > /dev/null; printf 'granted\tt/x\n'; false; }\n"])
def test_where_the_library_says_nothing_zfs_is_asked_of_each(before: str, tmp_path: Path) -> None:
    told, asked = looked(tmp_path, before)
    assert re.findall(r"^rights of (.*)$", told, re.MULTILINE) == ["t/a/b"], "what is said there holds all above"
    assert "=holds\nt/a@1\tkeep\t1\n=allowed\n" in told
    assert "t/a@1\t7\t8\nt/a@2\t7\t8\n=holds" in told
    assert "holds -Hp t/a@1" in asked


def test_rights_on_none_ask_of_none(tmp_path: Path) -> None:
    told, asked = looked(tmp_path, ANSWERS.replace("granted t/a", "received type"))
    assert "rights of" not in told
    assert not [line for line in asked if line.startswith("allow")]


@pytest.mark.parametrize(("known", "apart"), [("echo copies", {"copies"}), (":", set()), ("", {"copies", "atime"})])
def test_only_what_was_received_is_asked_for_as_received(known: str, apart: set[str], tmp_path: Path) -> None:
    before = f"known_received() {{ {known}; }}\n" if known else ""
    functions = before + script("engines/zfs", "properties-by-line.sh")
    command = Command(argv=("sh", "-c", f"{functions}properties_by_line -r t", "x"), effect=Effect.READS)
    one = ZFS.replace("LOG", "/dev/null").replace(" t t t t/a t/a t/a;;", " t t t;;").replace('echo "$6"', 'echo "$7"')
    done = run(command, tmp_path, {"zfs": one})
    lines = {line.split("\t")[1]: line for line in done.stdout.splitlines()}
    assert done.returncode == 0
    assert lines == {
        name: f"t\t{name}\t2\t{'3' if name in apart else '-'}\tlocal" for name in ("type", "copies", "atime")
    }
