"""A key that goes through a gate: copies go as without it, and whoever holds the key can read one folder, and do nothing else."""

import getpass
import os
import re
import shlex
import socket
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from orchestrator.process.handover import HAND_OVER, PERL
from tests.hostile.conftest import STRANGER
from tests.whole.damage import fill
from tests.whole.house import House, Ran, facts, trees_equal, wait_until
from tests.whole.large_copy import AT_ONCE, in_the_middle, random_file
from tests.whole.sshd import Link, Sshd, link, sshd

pytestmark = pytest.mark.slow
__all__ = ["link", "sshd"]

SECRET = "the secret of another folder\n"


def gate(house: House, sshd: Sshd, *more: str, reads: Sequence[Path] = ()) -> Ran:
    """Let the client's key through a gate that reads the source, or these folders, and do nothing else with it."""
    key, keys = (sshd.folder / "user_key.pub").read_text(), sshd.folder / "authorized_keys"
    keys.unlink()
    folders = [word for folder in reads or [house.source] for word in ("--reads", str(folder))]
    done = house.call("setup", "gate", "vault", *folders, "--key", key, "--into", str(keys), *more)
    assert done.code == 0, done
    assert keys.stat().st_mode & 0o777 == 0o600
    return done


def ask(sshd: Sshd, *words: str, stdin: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    """Return the answer to a request of a hostile client."""
    argv = ["ssh", "-F", str(sshd.folder / "client"), "-p", str(sshd.port), f"{sshd.user}@127.0.0.1", *words]
    return subprocess.run(argv, input=stdin, capture_output=True, timeout=60, check=False)


@pytest.fixture
def elsewhere(house: House) -> Iterator[Path]:
    """A folder beside the source; after the test nothing in it was touched."""
    folder = house.folder / "elsewhere"
    folder.mkdir()
    (folder / "secret").write_text(SECRET)
    before = facts(folder)
    yield folder
    assert facts(folder) == before


def test_several_folders_go_through_a_gate_and_nothing_beside_them(house: House, sshd: Sshd, elsewhere: Path) -> None:
    folders = [house.folder / name for name in ("etc", "srv/www")]
    for folder in folders:
        fill(folder)
    other = house.folder / "srv/other"
    house.write(other / "secret", SECRET)
    told = gate(house, sshd, reads=folders)
    assert told["source"] == f"sources = [{', '.join(_told_url(folder) for folder in folders)}]"
    house.job(sources=[sshd.url(folder) for folder in folders], source=None, pipe=sshd.pipe)
    assert (first := house.run()).outcome == "done", first
    copies = [house.point() / str(folder)[1:] for folder in folders]
    assert [facts(copy) for copy in copies] == [facts(folder) for folder in folders]
    assert house.run().outcome == "nothing-to-do"
    house.write(folders[0] / "plain", "changed")
    (folders[1] / "-dash").unlink()
    assert (third := house.run()).outcome == "done", third
    assert house.call("verify", "photos", "--source").code == 0
    assert house.call("check", "--system").code == 0
    house.job(sources=[sshd.url(folders[0]), sshd.url(other)], source=None, pipe=sshd.pipe)
    refused = house.run()
    assert (refused.code, f"{str(other)!r} is not in" in str(refused.value)) == (1, True), refused
    house.job(sources=[sshd.url(folder) for folder in folders], source=None, pipe=sshd.pipe, rsync={"parallel": 2})
    house.write(folders[0] / "plain", "again")
    assert "write parallel = 1" in str(house.run().value)


def _told_url(folder: Path) -> str:
    return f'"ssh://{getpass.getuser()}@{socket.gethostname()}{folder}"'


@pytest.mark.parametrize(
    "keys", [{}, {"rsync": {"points": False, "delete": True}}, {"rsync": {"parallel": 3}}, {"rsync": {"checksum": True}}],
    ids=["points", "mirror", "parallel", "checksum"],
)  # fmt: skip
@pytest.mark.sample(2)
def test_a_run_goes_through_a_gate_as_without_it(house: House, sshd: Sshd, keys: dict[str, object]) -> None:
    fill(house.source)
    gate(house, sshd)
    house.job(source=sshd.url(house.source), pipe=sshd.pipe, **keys)
    mirror = "points" in str(keys)
    assert (first := house.run()).outcome == "done", first
    assert house.run().outcome == "nothing-to-do"
    house.write("plain", "changed")
    os.unlink(house.source / "-dash")
    house.write("new", "file")
    assert (third := house.run()).outcome == "done", third
    copy = house.target if mirror else house.point()
    assert not (copy / "-dash").exists()
    assert (copy / "new").read_text() == "file"
    for words in (("verify", "photos", "--source"), ("drill", "photos")):
        assert (told := house.call(*words)).code == 0, told
    checked = house.call("check", "--system")
    assert checked.code == 0, checked
    assert "goes through the gate vault: anything else was tried, and refused" in str(checked.value), checked


def test_a_cut_copy_goes_on_through_a_gate(house: House, sshd: Sshd, link: Link) -> None:
    size = random_file(house.source / "disk.img", 120_000_000).stat().st_size
    gate(house, sshd)
    sshd.through = link.port
    house.job(source=sshd.url(house.source), pipe={**sshd.pipe, "rate-limit": "60M"}, retry=AT_ONCE)
    run = house.start()
    in_the_middle(house, size)
    link.cut()
    ended = house.ended(run)
    assert (ended.outcome, ended["resumed"]) == ("done", True), ended
    assert ended["moved_bytes"] < 1.2 * size
    assert trees_equal(house.source, house.point())


REQUESTS = (
    "", "true", "id", "cat {secret}", "cat {source}/file", "sh -c 'cat {secret}'",
    "sh -c 'cat {secret}' look-at-source.sh {source} whole; cat {secret}", "$(cat {secret})", "rm -rf {source}",
    "find {elsewhere}/. -printf '%P//\\0'", "find {source}/../elsewhere/. -printf '%P//\\0'", "find {source}/. -delete",
    "touch {elsewhere}/new", "rsync --server -vlogDtpre.iLsfxCIvu . {elsewhere}/", "sync -f {elsewhere}",
    "rsync --server --sender -vlogDtpre.iLsfxCIvu . {secret}", "scp -f {secret}", "internal-sftp", "zfs list",
    "sh -c x list-attributes.sh {elsewhere} all", "sh -c x sizes.sh {source} ./../elsewhere/secret",
    "sh -c x sizes.sh {source} ./out/secret", "sh -c x list-source.sh {source}/out '' '' '%P\\0'",
    "env LD_PRELOAD={source}/evil.so sync -f {source}", "poolferry status", "poolferry gate other",
)  # fmt: skip


def test_a_hostile_client_reads_nothing_else_and_changes_nothing(house: House, sshd: Sshd, elsewhere: Path) -> None:
    house.write("file", "content")
    (house.source / "out").symlink_to(elsewhere)
    gate(house, sshd)
    before = facts(house.source)
    names = {"source": house.source, "elsewhere": elsewhere, "secret": elsewhere / "secret"}
    for request in REQUESTS:
        answer = ask(sshd, request.format(**{name: shlex.quote(str(path)) for name, path in names.items()}))
        assert SECRET.encode() not in answer.stdout + answer.stderr, request
        assert str(len(SECRET)).encode() not in answer.stdout, request
        if not request.startswith("sh -c x sizes.sh"):
            assert b"poolferry gate vault: refused: " in answer.stderr, (request, answer)
            assert answer.returncode == 126, (request, answer)
    assert facts(house.source) == before


def test_rsync_itself_cannot_be_led_out_of_the_folder(
    house: House, sshd: Sshd, elsewhere: Path, tmp_path: Path
) -> None:
    """Its server believes names of its client; the kernel does not let it read what is elsewhere."""
    house.write("file", "content")
    (house.source / "out").symlink_to(elsewhere)
    gate(house, sshd)
    names, into = tmp_path / "names", tmp_path / "into"
    into.mkdir()
    rsh = shlex.join(("ssh", "-F", str(sshd.folder / "client"), "-p", str(sshd.port)))
    url = f"{sshd.user}@127.0.0.1:{house.source}/"
    for wanted in ("../elsewhere/secret", "out/secret", "../../../../../../../../root/.ssh/id_rsa", "../elsewhere/"):
        names.write_text(f"file\n{wanted}\n")
        argv = ["rsync", "-r", f"--files-from={names}", "-e", rsh, url, str(into)]
        subprocess.run(argv, capture_output=True, timeout=60, check=False)
        found = [path for path in tmp_path.rglob("secret") if elsewhere not in path.parents]
        assert found == [], wanted
    assert (into / "file").read_text() == "content"
    for option in ("-L", "--copy-unsafe-links", "--copy-dirlinks", "--remove-source-files"):
        ended = subprocess.run(
            ["rsync", "-r", option, "-e", rsh, url, str(into)], capture_output=True, text=True, check=False
        )
        assert "poolferry gate vault: refused: " in ended.stderr, (option, ended)
    assert (house.source / "file").exists()


def test_a_pull_of_more_than_the_gate_allows_says_so(house: House, sshd: Sshd) -> None:
    house.write("deep/file", "content")
    whole = house.source
    house.source = whole / "deep"
    gate(house, sshd)
    house.job(source=sshd.url(whole), pipe=sshd.pipe)
    ended = house.run()
    assert ended.outcome == "failed", ended
    assert "the gate of our key does not let it do this" in ended["why"], ended
    assert "journalctl -t poolferry-gate" in ended["hint"]
    house.job("deep", source=sshd.url(whole / "deep"), target=str(house.folder / "other"), pipe=sshd.pipe)
    assert house.run("deep").outcome == "done"


def test_the_source_that_is_told_is_the_folder_as_a_job_names_it(house: House, sshd: Sshd) -> None:
    house.source = house.folder / "a,b_100%"
    house.source.mkdir()
    house.write("file", "content")
    told = gate(house, sshd)["source"]
    path = re.fullmatch(r'source = "ssh://[^/]+(/.*)"', told)
    assert path, told
    house.job(source=sshd.url("") + path[1], pipe=sshd.pipe)
    assert (ended := house.run()).outcome == "done", ended


def test_set_up_and_taking_away(house: House, sshd: Sshd) -> None:
    keys, key = sshd.folder / "authorized_keys", (sshd.folder / "user_key.pub").read_text()
    words = ["setup", "gate", "vault", "--reads", str(house.source), "--key", key, "--into", str(keys)]
    refused = house.call(*words)
    assert refused.code == 2, refused
    assert f"{keys}:1 has this key already, and sshd takes the first line of a key" in refused.errors
    (command,) = re.findall(r"`(sed .*)`", refused.errors)
    subprocess.run(["sh", "-c", command], check=True)
    assert house.call(*words).code == 0
    assert house.call(*words).code == 0
    assert keys.read_text().count("\n") == 1
    assert ask(sshd, "true").returncode == 126
    assert house.call("setup", "gate", "vault", "--remove", "--into", str(keys)).code == 0
    assert keys.read_text() == ""
    assert ask(sshd, "true").returncode == 255
    assert not list(house.folder.rglob("vault.toml"))


def test_a_gate_is_asked_through_what_starts_quickest(house: House, sshd: Sshd) -> None:
    """And its line goes with it; a request is answered as by the program itself, whether it is handed over or not."""
    house.write("file", "content")
    gate(house, sshd)
    keys = sshd.folder / "authorized_keys"
    line = keys.read_text()
    assert line.startswith(f'command="{PERL} -e '), line
    assert f" {HAND_OVER} " in line, line
    asked = shlex.join(("sh", "-c", "x", "look-at-source.sh", str(house.source), "whole"))
    first = ask(sshd, asked)
    wait_until(lambda: list(house.folder.rglob("gate-vault.session")), 20)
    later = ask(sshd, asked)
    assert first.stdout
    assert (later.returncode, later.stdout, later.stderr) == (first.returncode, first.stdout, first.stderr)
    for _ in range(2):
        refused = ask(sshd, "true")
        assert (refused.returncode, b"refused: it was asked for" in refused.stderr) == (126, True), refused
    program = line.partition(f"{HAND_OVER} ")[2]
    # As older versions wrote it, and as it stands after a downgrade to one without the script, or with one that does not fit.
    broken = house.folder / "broken.pl"
    broken.write_text("this is no perl {")
    reads = line.removeprefix('command="').partition(HAND_OVER)[0]
    for front in ("", f"{PERL} {HAND_OVER} ", f"{reads}/nowhere.pl ", f"{reads}{broken} "):
        keys.write_text(f'command="{front}{program}')
        again = ask(sshd, asked)
        assert (again.returncode, again.stdout) == (0, first.stdout), (front, again)
    keys.write_text(line)
    assert house.call("setup", "gate", "vault", "--into", str(keys), "--remove").code == 0
    assert keys.read_text() == ""
    assert ask(sshd, "true").returncode == 255


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("vault", "--reads", "srv"), "expected an absolute path"),
        (("vault", "--reads", "/"), "not the root"),
        (("vault", "--reads", "/srv/../etc"), "does not fit"),
        (("../vault", "--reads", "/srv"), "is no name of a gate"),
        (("vault", "--reads", "/srv", "--key", "ssh-rsa x"), "no public key"),
        (("vault", "--reads", "/srv", "--key", "/etc/passwd"), "$(cat /etc/passwd)"),
        (("vault", "--reads", "/srv", "--key", 'command="id" ssh-ed25519 ' + "A" * 68), "no public key"),
        (
            ("vault", "--reads", "/srv", "--key", "ssh-ed25519 " + "A" * 68 + "\nssh-ed25519 " + "B" * 68),
            "no public key",
        ),
        (("vault", "--receives", "vault/../x"), "expected a dataset"),
        (("vault", "--receives", "vault@a"), "expected a dataset"),
        (("vault", "--sends", "/srv"), "expected a dataset"),
        (("vault", "--receives", "vault/in", "--at-most", "much"), "expected a size"),
        (("vault", "--reads", "/srv", "--at-most", "1T"), "it goes with --receives"),
        (("vault", "--reads", "/srv", "--keep-free", "1T"), "it goes with --adds"),
        (("vault",), "--reads or --adds DIR, --sends or --receives DATASET, and --key KEY are needed"),
    ],
)
def test_a_wrong_set_up_writes_nothing(house: House, words: tuple[str, ...], said: str) -> None:
    keys = house.folder / "keys"
    given = () if "--key" in words or len(words) == 1 else ("--key", "ssh-ed25519 " + "A" * 68)
    ended = house.call("setup", "gate", *words, *given, "--into", str(keys))
    assert (ended.code, said in ended.errors) == (2, True), ended
    assert not keys.exists()
    assert not list(house.folder.rglob("vault.toml"))


def test_mistakes_of_a_gate_are_told_and_close_it(house: House, sshd: Sshd) -> None:
    gate(house, sshd)
    (file,) = house.folder.rglob("vault.toml")
    house.job()
    for text, said in (
        ("", "the file is empty"),
        ('reads = "srv"', "does not fit"),
        ('reads = "/srv"\nwrites = 1', "unknown key"),
        ("connections = 3", "says not what the key may do"),
        ('reads = "/srv"\nat-most = "1T"', "limits nothing"),
        ('reads = "/srv"\nkeep-free = "1T"', "limits nothing"),
        ('sends = "tank@a"', "does not fit"),
        ('reads = "/srv"\npools = ["0123456789abcdef"]', "names pools to which nothing is copied"),
        ('sends = "tank"\npools = ["vault"]', "does not fit"),
    ):
        file.write_text(text)
        assert said in house.call("check").errors
        closed = ask(sshd, "sync", "-f", str(house.source))
        assert closed.returncode == 2, closed
    file.write_text(f'reads = "{house.source}"')
    file.chmod(0o666)
    assert "chmod" in house.call("check").errors
    assert ask(sshd, "sync", "-f", str(house.source)).returncode == 2
    file.unlink()
    assert b"there is no such gate" in ask(sshd, "sync", "-f", str(house.source)).stderr


def test_no_more_requests_are_answered_at_once_than_may_be(house: House, sshd: Sshd) -> None:
    house.write("file", "content")
    gate(house, sshd)
    (file,) = house.folder.rglob("vault.toml")
    file.write_text(file.read_text() + "connections = 1\n")
    client = ("ssh", "-F", str(sshd.folder / "client"), "-p", str(sshd.port), f"{sshd.user}@127.0.0.1")
    server = ("rsync", "--server", "--sender", "-re.LsfxCIvu", ".", f"{house.source}/")
    with subprocess.Popen([*client, *server], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as waits:
        assert waits.stdin
        assert waits.stdout
        assert waits.stdout.read(1)  # rsync's greeting: it has come through
        busy = ask(sshd, "sync", "-f", str(house.source))
        assert (busy.returncode, b"refused: busy: 1 request" in busy.stderr) == (126, True), busy
        waits.stdin.close()
    assert list(house.folder.rglob("gate-vault.places")), "counted elsewhere than in the state directory"
    assert ask(sshd, "sync", "-f", str(house.source)).returncode == 0


def test_a_folder_that_a_user_makes_a_link_leads_the_gate_nowhere(house: House, sshd: Sshd, elsewhere: Path) -> None:
    hers = house.folder / "hers"
    hers.mkdir()
    house.source = hers / "photos"
    house.source.mkdir()
    house.write("file", "content")
    os.chown(hers, STRANGER, STRANGER)
    gate(house, sshd)
    listing = shlex.join(("sh", "-c", "x", "look-at-source.sh", str(house.source), "whole"))
    assert ask(sshd, listing).returncode == 0
    house.source.rename(hers / "old")
    house.source.symlink_to(elsewhere)
    os.lchown(house.source, STRANGER, STRANGER)
    answer = ask(sshd, "rsync", "--server", "--sender", "-re.LsfxCIvu", ".", f"{house.source}/")
    assert answer.returncode == 126, answer
    assert b"poolferry gate vault: refused: " in answer.stderr
    house.source.unlink()
    assert ask(sshd, listing).returncode == 0  # that it is not there is for the question to answer


def test_keys_that_are_not_ours_to_write_stay_as_they_are(house: House, tmp_path: Path) -> None:
    key, keys = f"ssh-ed25519 {'A' * 68} vault", tmp_path / "keys"
    words = ("setup", "gate", "vault", "--reads", str(house.source), "--key", key, "--into")
    keys.write_text("# a remark\x0c with a form feed\nssh-ed25519 other")
    keys.chmod(0o644)
    assert house.call(*words, str(keys)).code == 0
    assert keys.read_text().startswith("# a remark\x0c with a form feed\nssh-ed25519 other\ncommand=")
    assert keys.stat().st_mode & 0o777 == 0o644
    assert house.call("setup", "gate", "vault", "--remove", "--into", str(keys)).code == 0
    assert keys.read_text() == "# a remark\x0c with a form feed\nssh-ed25519 other\n"
    os.chown(keys, STRANGER, STRANGER)
    refused = house.call(*words, str(keys))
    assert (refused.code, "run this command as that user" in refused.errors) == (2, True), refused
    os.chown(keys, 0, 0)
    (tmp_path / "link").symlink_to(keys)
    refused = house.call(*words, str(tmp_path / "link"))
    assert f"add `--into {keys}`" in refused.errors, refused
    assert (tmp_path / "link").is_symlink()


def test_two_set_ups_at_once_lose_no_key(house: House, tmp_path: Path) -> None:
    keys = tmp_path / "keys"
    running = [
        house.start_call("setup", "gate", f"gate{number}", "--reads", str(house.source), "--into", str(keys),
                         "--key", f"ssh-ed25519 {chr(ord('A') + number) * 68}")
        for number in range(8)
    ]  # fmt: skip
    said = [each.communicate() for each in running]
    assert [each.returncode for each in running] == [0] * 8, said
    assert keys.read_text().count("\n") == 8


def test_a_program_that_is_not_installed_is_named(house: House) -> None:
    found = run_become("import orchestrator.process.confine as c; c.SYSTEM_PATH = ('/nowhere',)", house)
    assert (found.returncode, "FileNotFoundError" in found.stderr) == (1, True), found


def test_a_kernel_without_landlock_lets_nothing_through(house: House) -> None:
    """The kernel's own answer to a call that it does not know."""
    found = run_become("import orchestrator.process.confine as c; c._CREATE_RULESET = 100_000", house)
    assert (found.returncode, "ConfinementUnavailable" in found.stderr) == (1, True), found
    assert found.stdout == ""


def run_become(before: str, house: House) -> "subprocess.CompletedProcess[str]":
    """Become `ls`, in a process of its own."""
    become = (
        "from orchestrator.domain.plan import Command, Effect; import os; "
        f"c.become(Command(argv=('ls',), effect=Effect.READS), folders=[os.open({str(house.folder)!r}, os.O_RDONLY)])"
    )
    return subprocess.run([sys.executable, "-c", f"{before}; {become}"], capture_output=True, text=True, check=False)
