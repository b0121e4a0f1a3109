"""Datasets through a gate: a key that only adds to copies, and a key that only copies from here, on real OpenZFS."""

import re
import shlex
from pathlib import Path

import pytest

from tests.engines.zfs.survey.token_maker import packed, token
from tests.lab.common import ENCRYPTED, Ended, Machine
from tests.lab.cuts import PATIENCE, SOURCE, Chain, Copying, answer, ours, pace
from tests.lab.gates import let_through, recipe, type_recipe
from tests.lab.laboratory import Pair
from tests.whole.house import wait_until

pytestmark = pytest.mark.virtual
SHARED = ("ssh", "-oControlMaster=auto", "-oControlPath=/run/%C", "-oControlPersist=600")
CHAIN = Chain(a=8, b=1, c=1)
LITTLE = Chain(a=1, b=1, c=1)
INTO = ("receive", "-s", "-u", "-x", "poolferry:receive")


# What the sender knows, and somebody else's copy on the server, too; and a dataset of its own that has it below.
_ANOTHERS = """zfs create tank/other && zfs snapshot tank/other@s && zfs send tank/other@s > /run/stream && zfs create tank/p && zfs snapshot tank/p@a
zfs receive -u tank/p/c < /run/stream && zfs snapshot tank/p/c@t && zfs clone tank/p/c@s tank/p/d && zfs snapshot tank/p/d@t"""


# A stream that says of itself that it refers to blocks that came before (send -D of older versions); and one without some blocks.
DEDUP = "python3 -c 'import sys; d = bytearray(sys.stdin.buffer.read()); d[16] |= 12; sys.stdout.buffer.write(d)'"
_REDACTED = f"""zfs clone {SOURCE}@c tank/red && head -c 1M /dev/urandom | dd of=/tank/red/a conv=notrunc status=none && zfs snapshot tank/red@r
zfs redact {SOURCE}@c book tank/red@r"""


def ask(machine: Machine, other: str, script: str, *values: str, stream: str = "") -> Ended:
    """Return the answer to a hostile request: a script of ours by its name, with these arguments, fed with a stream."""
    words = shlex.join((*SHARED, other, shlex.join(("sh", "-c", "id", script, *values))))
    return machine.sh(f"{stream} | {words}" if stream else words, check=False)


def killed_at_the_gate(copying: Copying) -> None:
    """All that answers there ends at once, in the middle: what came is kept, and the run says what it met."""
    run = copying.begin()
    copying.wait_for(0.15)
    copying.receiver.sh("pkill -9 -f ' gate laptop'; pkill -9 -x zfs", check=False)
    told = answer(run.wait(PATIENCE))
    assert (told["outcome"], told["moved_bytes"] > 0) == ("failed", True), told
    copying.wait_for_token()


def killed_and_resumed(copying: Copying, part: float, *, runs: int) -> None:
    """Kill the run in its middle, after so many other runs, and let the next one end."""
    run = copying.begin()
    copying.wait_for(part)
    copying.wait_for_token()
    run.kill(9)
    wait_until(lambda: not ours(copying.at), 30, pause=0.3)
    told = copying.run()
    assert (told["outcome"], told["resumed"]) == ("done", True), told
    assert copying.moved(*range(1, runs + 3)) < 1.6 + 0.3 * runs
    copying.require_equal()
    copying.require_nothing_left()
    assert copying.run()["outcome"] == "nothing-to-do"


def cut_and_known(pair: Pair, copying: Copying, part: float) -> None:
    """The wire is pulled out in the middle, and put back once the run has seen it: what came is kept, though a receive may still wait there."""
    run = copying.begin()
    copying.wait_for(part)
    pair.cut()
    told = answer(run.wait(PATIENCE))
    pair.mend()
    assert (told["outcome"], told["moved_bytes"] > 0) == ("failed", True), told


@pytest.mark.long
def test_a_push_that_is_cut_goes_on_through_a_gate(pair: Pair) -> None:
    """Killed there, then the wire, then killed here. And it comes back, where the gate lets the key fetch what it brought."""
    copying = Copying(*pair, chain=CHAIN, rate=pace(pair))
    let_through(pair.backup, "laptop", "--receives", "vault", "--sends", "vault")
    killed_at_the_gate(copying)
    cut_and_known(pair, copying, 0.35)
    killed_and_resumed(copying, 0.6, runs=2)
    pair.master.sh(f"sed -i /rate-limit/d {pair.master.config}/jobs/photos.toml")
    told = pair.master.poolferry("restore", "run", "photos", "--to", "tank/back", "--json", seconds=PATIENCE).json
    assert told["outcome"] == "done", told
    assert copying.guids(pair.master, "tank/back") == copying.guids(pair.master, SOURCE)
    assert pair.master.sh("cmp /tank/photos/c /tank/back/c", check=False).code == 0


@pytest.mark.long
def test_a_pull_that_is_cut_goes_on_through_a_gate(pair: Pair) -> None:
    """The wire, then killed here. And the key reads nothing else, and writes no mark but poolferry's."""
    copying = Copying(*pair, chain=CHAIN, rate=pace(pair), pulls=True)
    source, other = copying.sender, copying.sender.name
    source.sh("zfs create tank/secret && echo secret > /tank/secret/file && zfs snapshot tank/secret@s")
    type_recipe(source, recipe("sends")[0].replace("--sends tank ", f"--sends {SOURCE} "))
    cut_and_known(pair, copying, 0.2)
    killed_and_resumed(copying, 0.5, runs=1)
    before = source.sh("zfs list -Hp -r -t all -o name,guid,userrefs tank").text
    guid = int(source.sh("zfs get -Hpo value guid tank/secret@s").text)
    stolen = token(packed({"object": 1, "offset": 0, "bytes": 0, "toguid": guid, "toname": f"{SOURCE}@a"}))
    for script, *values in (
        ("zfs.sh", "send", "-PLce", "tank/secret@s"), ("zfs.sh", "send", "-P", "-t", stolen),
        ("zfs.sh", "destroy", f"{SOURCE}@a"), ("hold.sh", "mine", f"{SOURCE}@a"), ("newest.sh", "tank/secret"),
        ("bookmarks-one-by-one.sh", SOURCE, "@a", "mine"), ("destroy-bookmarks.sh", f"{SOURCE}@a"),
    ):  # fmt: skip
        answer = ask(copying.at, other, script, *values)
        assert (answer.code != 0, answer.out) == (True, b""), (script, values, answer)
    assert source.sh("zfs list -Hp -r -t all -o name,guid,userrefs tank").text == before
    checked = copying.at.poolferry("check", "--system").out.decode()
    assert "goes through the gate vault: tried to destroy, and was refused" in checked, checked


def it_reads_as_promised_and_fetches_nothing(master: Machine) -> None:
    """The copy is read where it lies; what would bring it back names the right that the gate has not."""
    master.sh(f"printf '\\n[verify]\\nread-all-within = \"30d\"\\n' >> {master.config}/jobs/photos.toml")
    read = master.poolferry("verify", "photos", "--due", "--json")
    assert (read.code, "all sound" in read.text) == (0, True), read
    back = master.poolferry("restore", "run", "photos", "--to", "tank/back", "--json")
    assert (back.code, back.json["why"].partition(" (")[0]) == (1, "our key has not the right for this there"), back
    assert 'no right for that: sends = "vault/in/laptop" would let it through' in back.json["why"], back


def receive_redacted(pair: Pair, copy: str) -> None:
    """Without some blocks it is a copy as any other, which is not mounted."""
    taken = ask(pair.master, "backup", "zfs.sh", *INTO, copy, stream=f"zfs send --redact book {SOURCE}@c")
    assert taken.code == 0, taken
    assert pair.backup.sh(f"zfs get -Ho value readonly,canmount,mounted {copy}").lines == ("on", "noauto", "no")


@pytest.mark.flavours("trixie", long=["bookworm"])
def test_a_key_that_only_adds_harms_no_copy(pair: Pair) -> None:
    master, backup = pair
    copying = Copying(*pair, chain=LITTLE)
    at, mine = "vault/in/laptop", "vault/in/laptop/photos"
    master.sh(_ANOTHERS)
    backup.write("/run/stream", master.read("/run/stream"))
    made, gate = recipe("receives")
    backup.sh(f"{made} && zfs receive -u vault/in/other < /run/stream")
    master.write(f"{master.config}/targets.toml", f'[place.vault]\ndataset = "ssh://root@backup/{at}"\n')
    plain = master.poolferry("check", "--system").out.decode()
    assert "this key can destroy its own copies" in plain, plain
    type_recipe(backup, gate, "sed -i s/2T/100M/ /etc/poolferry/gates/laptop.toml")
    assert copying.run()["outcome"] == "done"
    checked = master.poolferry("check", "--system").out.decode()
    assert "append-only: tried to destroy, and the gate laptop refused" in checked, checked
    it_reads_as_promised_and_fetches_nothing(master)

    def copies() -> str:
        return backup.sh("zfs list -Hp -r -t all -o name,guid,userrefs vault; zfs get -Hpr all vault | grep local").text

    master.sh(_REDACTED)
    before = copies()
    whole, tree = f"zfs send -p {SOURCE}@c", f"zfs send -R {SOURCE}@c"
    for stream, script, *values in (
        ("", "zfs.sh", "destroy", f"{mine}@a"), ("", "zfs.sh", "destroy", "-r", mine), ("", "zfs.sh", "rollback", "-r", f"{mine}@a"),
        ("", "zfs.sh", "rename", mine, f"{at}/gone"), ("", "zfs.sh", "set", "readonly=off", mine), ("", "zfs.sh", "promote", mine),
        ("", "zfs.sh", "receive", "-A", "vault/in/other"), ("", "abort-receive.sh", "vault/in/other"),
        ("", "release.sh", "poolferry_0123456789abcdef", f"{mine}@a"), ("", "destroy-bookmarks.sh", f"{mine}#a"),
        (whole, "zfs.sh", "receive", "-s", "-u", "-F", "-x", "poolferry:receive", mine), (whole, "zfs.sh", "receive", "-F", mine),
        (whole, "zfs.sh", *INTO, "vault/in/other/x"), (whole, "zfs.sh", *INTO, at), (whole, "zfs.sh", *INTO, mine),
        ("zfs send -i @s tank/p/c@t", "zfs.sh", *INTO, f"{at}/x"),
        (whole, "zfs.sh", *INTO, "-o", "mountpoint=/etc", f"{at}/x"), (tree, "zfs.sh", *INTO, f"{at}/x"),
        (f"(zfs send {SOURCE}@c | {DEDUP})", "zfs.sh", *INTO, f"{at}/x"), (f"zfs send --redact book {SOURCE}@c", "zfs.sh", *INTO, mine),
        ("(echo no stream)", "zfs.sh", *INTO, f"{at}/x"), ("head -c 2000 /dev/zero", "receive.sh", "9999999k", "1", *INTO, f"{at}/x"),
    ):  # fmt: skip
        answer = ask(master, "backup", script, *values, stream=stream)
        assert (answer.code != 0, answer.out) == (True, b""), (script, values, answer)
    assert copies() == before
    # Behind a stream of its own, each of these: zfs looks for its base by its guid in the whole pool.
    theirs = backup.sh("zfs list -Hp -r -t all -o name,guid,clones vault/in/other").text
    for number, hidden in enumerate(("-i @s tank/p/c@t", "-i tank/p/c@s tank/p/d@t")):
        stream = f"(zfs send -p tank/p@a | head -c -312; zfs send {hidden}; printf '\\005'; head -c 311 /dev/zero)"
        answer = ask(master, "backup", "zfs.sh", *INTO, f"{at}/x{number}", stream=stream)
        assert backup.sh("zfs list -Hp -r -t all -o name,guid,clones vault/in/other").text == theirs, answer
        assert b"a stream of several datasets" in answer.errors, answer
    master.sh(f"zfs set -u mountpoint=/srv/other {SOURCE} 2>/dev/null || zfs set mountpoint=/srv/other {SOURCE}")
    master.sh(f"zfs set sharenfs=on {SOURCE}; zfs set reservation=10M {SOURCE}")
    taken = ask(master, "backup", "zfs.sh", *INTO, f"{at}/x", stream=whole)
    assert taken.code == 0, taken
    told = dict(line.split("\t") for line in backup.sh(f"zfs get -Ho property,value all {at}/x").lines)
    assert {name: told[name] for name in ("canmount", "readonly", "mountpoint", "sharenfs", "reservation", "mounted")} == {
        "canmount": "noauto", "readonly": "on", "mountpoint": "none", "sharenfs": "off", "reservation": "none", "mounted": "no",
    }  # fmt: skip
    receive_redacted(pair, f"{at}/redacted")
    assert set(before.splitlines()) <= set(copies().splitlines())
    backup.sh("sed -i 's/100M/1M/' /etc/poolferry/gates/laptop.toml")
    master.sh(f"zfs snapshot {SOURCE}@d")
    full = copying.run()
    assert (full["outcome"], "lets no more in" in full["why"]) == ("failed", True), full


_KEY = "ssh-ed25519 " + "A" * 68
_COPIES = f"""zfs create -o recordsize=1M tank/a && seq 90000 > /tank/a/large && echo little > /tank/a/little && zfs snapshot tank/a@a
seq 9 > /tank/a/more && zfs snapshot tank/a@b && {ENCRYPTED} tank/secret && seq 99 > /tank/secret/file && zfs snapshot tank/secret@a
zfs create tank/other && seq 5000 > /tank/other/file && zfs snapshot tank/other@a && echo more > /tank/other/more && zfs snapshot tank/other@b
zfs create -p vault/in/laptop && zfs create vault/theirs && zfs send -Lce tank/a@a | zfs receive -u vault/in/laptop/photos
zfs send tank/other@a | zfs receive -u vault/theirs/other
zfs send -pLce tank/a@a > /run/1 && zfs send -pLce -I @a tank/a@b > /run/2 && zfs send -pw tank/secret@a > /run/3 && zfs send -Le tank/a@b > /run/4
zfs send -p -i @a tank/other@b > /run/5 && zfs send -R tank/a@b > /run/6"""


def test_what_was_renamed_is_found_through_a_gate_as_far_as_it_shows(pair: Pair) -> None:
    """Both ways; what lies elsewhere there is not told, and that it may is said."""
    master, backup = pair
    master.pool("tank")
    backup.pool("vault")
    backup.pool("far")
    master.sh(
        "zfs create tank/copies; zfs create tank/photos && head -c 1M /dev/urandom >/tank/photos/one; zfs snapshot tank/photos@a"
    )
    backup.sh("zfs create -p vault/in/laptop; zfs create -p far/data/x; zfs snapshot far/data/x@a")
    places = '[place.vault]\ndataset = "ssh://root@backup/vault/in/laptop"\n[place.here]\ndataset = "tank/copies"\n'
    master.job("photos", 'engine = "zfs"\nsource = "tank/photos"\ntarget = "vault"\n', targets=places)
    master.job("pull", 'engine = "zfs"\nsource = "ssh://root@backup/far/data/x"\ntarget = "here"\n')
    let_through(backup, "both", "--receives", "vault/in/laptop", "--sends", "far/data")
    master.kitted("photos", "pull", at=("vault", "here"))

    def run(job: str) -> tuple[str, str, str]:
        told = master.poolferry("run", job, "--json", seconds=PATIENCE).json
        return told["outcome"], told["why"] + str(told["warnings"]) + str(told["evidence"]), told["hint"]

    for job, was, now in (
        ("photos", "vault/in/laptop/photos", "vault/in/laptop/old"),
        ("pull", "far/data/x", "far/data/y"),
    ):
        assert run(job)[0] == "done"
        backup.sh(f"zfs rename {was} {now}")
        outcome, why, hint = run(job)
        assert (outcome, f"is called {now} now" in why) == ("refused", True), why
        (back,) = re.findall(r"back: on backup: (zfs rename [^;]*)", hint)
        backup.sh(back)
        assert run(job)[0] == "nothing-to-do"
    backup.sh("zfs rename far/data/x far/elsewhere")
    outcome, why, hint = run("pull")
    assert (outcome, "elsewhere" in why.replace("it may lie elsewhere there", "") + hint) == ("refused", False), why
    assert "the gate of our key shows far/data alone, and nothing there has its guid" in why
    backup.sh("zfs rename vault/in/laptop vault/in/mobile")
    outcome, why, hint = run("photos")
    assert (outcome, "mobile" in why + hint) == ("refused", False), why
    assert why.startswith("vault/in/laptop, below which the gate of our key receives, is not there"), why
    backup.sh("zfs rename vault/in/mobile vault/in/laptop")  # as the hint says
    assert run("photos")[0] == "nothing-to-do"


@pytest.mark.long
@pytest.mark.flavours("trixie", "bookworm")
def test_no_damaged_stream_reaches_another_dataset_or_an_older_point(master: Machine) -> None:
    """Real ones with large, compressed, embedded and raw blocks, with faults in them or with others hidden in them."""
    master.pool("tank")
    master.pool("vault")
    master.sh(_COPIES, seconds=300)
    master.sh(
        ["poolferry", "setup", "gate", "laptop", "--receives", "vault/in/laptop", "--key", _KEY, "--into", "/run/keys"]
    )
    kept = "zfs list -Hp -r -t all -o name,guid,createtxg,origin vault tank | grep -v '^vault/in/laptop/[xy]'"
    theirs = "zfs get -Hpr -o name,property,value all vault/theirs tank | grep -vE 'used|available|snapshots_changed'"
    before, of_theirs = set(master.sh(kept).lines), master.sh(theirs).text
    master.write("/run/attack.py", (Path(__file__).parent / "gate_attack.py").read_text())
    files = [f"/run/{number}" for number in range(1, 7)]
    received = int(
        master.sh(["python3", "/run/attack.py", "/run/keys", "120", "vault/in/laptop", *files], seconds=900).text
    )
    assert 3 < received < 100, received
    after = set(master.sh(kept).lines)
    assert before <= after
    assert all(line.startswith("vault/in/laptop/photos") for line in after - before), after - before
    assert master.sh(theirs).text == of_theirs
    assert set(master.sh("zfs get -Hpo value -r -t filesystem,volume mounted vault/in/laptop | sort -u").lines) <= {
        "no",
        "-",
        "yes",
    }
    made = master.sh(
        "zfs list -Ho readonly,canmount,mounted -r -t filesystem vault/in/laptop | tail -n +2 | sort -u"
    ).lines
    assert set(made) <= {"on\tnoauto\tno", "off\ton\tno"}, made
    assert master.sh("zpool status -x").text.strip() == "all pools are healthy"


def requests(machine: Machine) -> tuple[int, int]:
    """So many logins, and so many requests of a gate, were answered until now."""
    said = machine.sh("journalctl -o cat --no-pager").text
    return said.count("Accepted publickey"), len(re.findall(r"^laptop: [0-9a-f.:]+: ", said, re.MULTILINE))


@pytest.mark.long
@pytest.mark.flavours("trixie", long=["bookworm"])
def test_a_quota_that_fills_in_the_middle_is_said_and_the_copy_goes_on(pair: Pair) -> None:
    """And a run with nothing to do takes one login and three requests."""
    copying, backup = Copying(*pair, chain=CHAIN, rate=pace(pair)), pair.backup
    let_through(backup, "laptop", "--receives", "vault")
    backup.sh("zfs set quota=5M vault")
    early = copying.run()
    assert (early["outcome"], "free" in early["why"]) == ("refused", True), early
    backup.sh("zfs set quota=none vault")
    run = copying.begin()
    copying.wait_for(0.2)
    backup.sh("zfs set quota=7M vault")
    full = answer(run.wait(PATIENCE))
    assert full["outcome"] == "failed", full
    assert "no space left" in full["why"] or "quota" in full["why"], full
    copying.wait_for_token()
    backup.sh("zfs set quota=none vault")
    pair.master.sh(f"sed -i /rate-limit/d {pair.master.config}/jobs/photos.toml")
    told = copying.run()
    assert (told["outcome"], told["resumed"]) == ("done", True), told
    assert told["moved_bytes"] < 0.8 * copying.stream, told
    copying.require_equal()
    before = requests(backup)
    assert copying.run()["outcome"] == "nothing-to-do"
    logins, asked = (now - then for now, then in zip(requests(backup), before, strict=True))
    assert (logins, asked in (1, 2, 3)) == (1, True), (logins, asked)


def sends_secrets(machine: Machine, target: str) -> None:
    """An encrypted dataset with a snapshot, and a job that sends it raw."""
    machine.pool("tank")
    machine.sh(f"{ENCRYPTED} tank/secret && echo secret > /tank/secret/file && zfs snapshot tank/secret@a")
    text = 'engine = "zfs"\nsource = "tank/secret"\ntarget = "vault"\nschedule = "manual"\n[retry]\nattempts = 1\n'
    machine.job("secret", text, targets=f'[place.vault]\ndataset = "{target}"\n')
    machine.kitted("secret")


@pytest.mark.flavours("trixie", long=["bookworm"])
@pytest.mark.long
def test_two_servers_keep_the_secrets_of_each_other_at_once(pair: Pair) -> None:
    """Raw, through a gate of root's, as the page has it, and one of a plain user's, whose rights are those that the set-up names."""
    master, backup = pair
    theirs = "vault/in/west"
    for machine, target in ((master, "ssh://ferry@backup/vault/in"), (backup, f"ssh://root@master/{theirs}")):
        machine.pool("vault")
        sends_secrets(machine, target)
    told = let_through(backup, "master", "--receives", "vault/in", user="ferry").lines
    prunes = type_recipe(master, *recipe("receives", "west")).lines
    backup.sh(next(line for line in told if line.startswith("  zfs create -p ")))
    backup.sh(next(line for line in told if line.startswith("  zfs allow ferry ")))
    for snapshot in ("b", "c"):
        under_way = [machine.popen(["poolferry", "run", "secret", "--json"]) for machine in pair]
        ends = [run.wait(PATIENCE) for run in under_way]
        assert [end.json["outcome"] for end in ends] == ["done", "done"], ends
        for machine in pair:
            machine.sh(f"zfs snapshot tank/secret@{snapshot}")
    for machine, other, copy in ((master, backup, "vault/in/secret"), (backup, master, f"{theirs}/secret")):
        guids = machine.sh("zfs list -Ho guid -t snapshot tank/secret").lines[:2]
        assert other.sh(f"zfs list -Ho guid -t snapshot {copy}").lines == guids
        assert other.sh(f"zfs get -Hpo value keystatus,encryption {copy}").lines == (
            "unavailable",
            "aes-256-gcm",
        )
    appends = any("readonly,receive:append," in line for line in told)
    checked = master.poolferry("check", "--system").out.decode()
    assert "append-only: tried to destroy, and the gate master refused; " in checked, checked
    assert ("zfs refuses it, too, and `receive -F`" if appends else "there has no receive:append") in checked, checked
    if appends:  # since OpenZFS 2.4
        backup.sh("zfs unallow ferry receive:append vault/in; zfs allow ferry receive vault/in")
        less = master.poolferry("check", "--system").out.decode()
        backup.sh(
            re.findall(r"as root, (zfs unallow ferry receive \S+ && zfs allow ferry receive:append \S+)", less)[0]
        )
        assert "zfs refuses it, too" in master.poolferry("check", "--system").out.decode()
    assert "rights on ssh://ferry@backup/vault/in/secret: ferry may do what is needed" in checked, checked
    master.sh(next(line for line in prunes if line.startswith("  printf ")))
    assert f"2 snapshots of {theirs}: none is to go" in master.poolferry("plan", "west-in").text
    # Without the gate: ZFS itself does what was said.
    backup.sh("zfs snapshot vault/in/secret@later")
    master.sh("zfs send -w -i @b tank/secret@c > /run/stream")
    backup.write("/run/stream", master.read("/run/stream"))
    forced = backup.sh("zfs receive -F -u vault/in/secret < /run/stream", user="ferry", check=False)
    there = backup.sh("zfs list vault/in/secret@later", check=False).code == 0
    assert (forced.code != 0, there) == (appends, appends), forced
