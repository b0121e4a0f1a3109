"""Hints that destroy, move or unlock something are typed as they are printed, where names have blanks; and they end the trouble."""

import re
import shlex
from typing import Any

import pytest

from tests.lab.common import Machine
from tests.lab.pools import guids, rebuild

pytestmark = [pytest.mark.long, pytest.mark.timeout(900)]
JOB = 'engine = "zfs"\nsource = "tank/photos"\ntarget = "vault"\n'
PLACE = '[place.vault]\ndataset = "vault/copies"\n'
SUB, COPY = "tank/photos/two words", "vault/copies/photos/two words"


def run(master: Machine, *more: str) -> dict[str, Any]:
    told: dict[str, Any] = master.poolferry("run", "photos", "--json", *more, seconds=300).json
    return told


def follow(master: Machine, told: dict[str, Any], pattern: str, outcome: str = "done") -> str:
    """Types the part of a hint that the pattern's group finds; then the job runs to that outcome. The command."""
    found = re.search(pattern, told["hint"])
    assert found, told
    master.sh(found[1])
    ran = run(master)
    assert ran["outcome"] == outcome, (found[1], ran)
    return found[1]


def test_hints_end_the_trouble_as_they_are_printed(master: Machine) -> None:
    for pool in ("tank", "vault"):
        master.pool(pool, "300M")
    master.sh(f"""set -e; zfs create vault/copies; zfs create tank/photos; zfs create '{SUB}'
        head -c 32 /dev/urandom >/root/key; zfs create -V 8M '{SUB}/disk'; echo one >'/{SUB}/one'; zfs snapshot -r tank/photos@a""")
    master.job("photos", JOB, targets=PLACE)
    master.kitted("photos")
    assert run(master)["outcome"] == "done"

    # A snapshot of the target's own.
    master.sh(f"zfs snapshot '{COPY}@mine'; zfs snapshot -r tank/photos@b")
    told = run(master)
    assert told["outcome"] == "failed", told
    follow(master, told, r"or (zfs rollback -r [^;]*)$")
    assert guids(master, COPY).keys() >= {"@a", "@b"}
    assert "@mine" not in guids(master, COPY)

    # The name of a snapshot that is to come is taken.
    master.sh(f"zfs rename '{COPY}@a' '{COPY}@c'; zfs snapshot -r tank/photos@c")
    told = run(master)
    assert "has another snapshot named @c" in told["why"], told
    follow(master, told, r"^(zfs rename [^;]*);")
    assert guids(master, COPY)["@c"] == guids(master, SUB)["@c"]

    # Datasets that were made anew at the source: what the copy holds comes back, what is there is kept.
    master.sh(f"zfs destroy -r '{SUB}'; zfs create '{SUB}'; echo new >'/{SUB}/new'; zfs snapshot -r tank/photos@d")
    told = run(master)
    assert "hold no snapshot in common" in str(told["evidence"]), told
    found = re.search(r"to bring back what the copy holds: (poolferry restore run .*? --aside)", told["hint"])
    assert found, told
    ended = master.poolferry(*shlex.split(found[1])[1:], "--json", seconds=300).json
    assert ended["outcome"] in ("done", "waiting"), ended
    (aside,) = [
        name for name in master.sh("zfs list -H -o name -r tank").lines if "_aside_" in name and "/disk" not in name
    ]
    assert guids(master, aside).keys() == {"@d"}, "nothing is lost"
    assert guids(master, SUB).keys() >= {"@b", "@c"}
    (unmount,) = re.findall(r"unmount that \((.*)\), and run the same command again", ended["hint"])
    master.sh(unmount)
    assert master.poolferry(*shlex.split(found[1])[1:], "--json", seconds=300).json["outcome"] == "done"
    assert master.sh(f"cat '/{SUB}/one'").text == "one"
    ran = run(master)
    assert (ran["outcome"], aside in str(ran["warnings"])) == ("nothing-to-do", True), ran


WORDS, WORDS_COPY = "tank/two words", "vault/the copies/two words"
KEYED = "12" * 32


def test_hints_about_a_copy_as_they_are_printed(master: Machine) -> None:
    """From the first snapshot over a comparison that fails to a restore under another name."""
    master.pool("tank", "300M")
    master.pool("vault", "300M", disk=True)
    master.sh(f"""set -e; zfs create 'vault/the copies'; zfs create -o mountpoint=/srv/words '{WORDS}'; echo one >/srv/words/one
        zfs create '{WORDS}/sub'; zfs create -V 8M '{WORDS}/disk'""")
    master.job(
        "photos",
        JOB.replace("tank/photos", WORDS),
        targets='[place.vault]\ndataset = "vault/the copies"\n',
    )
    master.kitted("photos")
    told = run(master)
    assert told["why"].startswith("there is no snapshot of"), told
    follow(master, told, r"take one: (zfs snapshot [^;]*);")

    # The pool of the copy is exported, and then imported without the right to write.
    master.sh(f"zfs snapshot -r '{WORDS}@b'; zpool export vault")
    told = run(master)
    assert "is not imported" in told["why"], told
    follow(master, told, r"^`(zpool import [^`]*)`")
    master.sh("zpool export vault; zpool import -o readonly=on vault")
    (job,) = master.poolferry("check", "--system", "--json").json["jobs"]
    (line,) = [each["text"] for each in job["advice"] if "read-only" in each["text"]]
    one, other = re.findall(r"(zpool (?:export|import) \S+?)(?=,|$)", line)
    master.sh(f"{one}; {other}")

    # The copy lacks what lies before its newest snapshot: it is begun anew beside, and nothing of it is lost.
    master.sh(f"zfs destroy '{WORDS_COPY}/sub@first'")
    told = master.poolferry("verify", "photos", "--json", seconds=300).json
    assert told["outcome"] == "failed", told
    again, rename, anew = re.findall(r"`([^`]*)`", told["hint"])
    assert master.poolferry(*shlex.split(again)[1:], "--json", seconds=300).json["outcome"] == "nothing-to-do"
    master.sh(rename)
    told = master.poolferry(*shlex.split(anew)[1:], "--json", seconds=300).json
    assert told["outcome"] == "done", told
    assert master.poolferry("verify", "photos", "--json", seconds=300).json["outcome"] == "done"
    assert guids(master, f"{WORDS_COPY}.old").keys() >= {"@first", "@b"}

    # Beside the source, in what is not there yet; its mountpoint comes back as the hint says.
    place = "tank/some where/two words"
    words = ("restore", "run", "photos", "--to", place, "--json")
    told = master.poolferry(*words, seconds=300).json
    assert told["outcome"] == "refused", told
    (create,) = re.findall(r"(zfs create -p .*)$", told["hint"])
    master.sh(create)
    told = master.poolferry(*words, seconds=300).json
    assert told["outcome"] == "done", told
    (inherits,) = re.findall(r"to have them back: (zfs inherit -S .*)$", "\n".join(told["warnings"]), re.MULTILINE)
    master.sh(f"zfs destroy -r '{WORDS}'; {inherits}")
    assert master.sh(f"zfs get -Ho value,source mountpoint '{place}'").text == "/srv/words\treceived"
    assert master.sh("cat /srv/words/one").text == "one"


def test_hints_in_a_pools_own_dataset_as_they_are_printed(master: Machine) -> None:
    master.pool("tank", "300M", options=("-O", "user:note=a b"))
    master.pool("vault", "300M")
    master.sh(f"""set -e; printf {KEYED} | zfs create -o encryption=on -o keyformat=hex -o keylocation=prompt vault/copies
        echo one >/tank/one; zfs create 'tank/a b'; echo two >'/tank/a b/two'; zfs snapshot -r tank@a; zfs unmount vault/copies; zfs unload-key vault/copies""")
    master.job("photos", JOB.replace("/photos", ""), targets=PLACE)
    master.kitted("photos")
    told = run(master)
    assert told["outcome"] == "failed", told
    load = re.match(r"`(zfs load-key [^`]*)`", told["hint"])
    assert load, told
    master.sh(f"printf {KEYED} | {load[1]}")
    assert run(master)["outcome"] == "done"

    # All its snapshots are gone, and then new: the copy is renamed away, with all below it.
    for kind in ("snapshot", "bookmark"):
        master.sh(f"zfs list -Hr -t {kind} -o name tank | tr '\\n' '\\0' | xargs -0 -n 1 zfs destroy")
    told = run(master)
    (snapshot,) = re.findall(r"else take one: (zfs snapshot -r .*)$", told["hint"])
    master.sh(snapshot)
    told = run(master)
    assert "hold no snapshot in common" in told["why"], told
    (aside,) = re.findall(r"start from scratch: (poolferry run .*? --aside)", told["hint"])
    told = master.poolferry(*shlex.split(aside)[1:], "--json", seconds=300).json
    assert told["outcome"] == "done", told

    # Made anew with another value; and a dataset has the name of one that returns.
    disk = master.lies_on("tank")
    master.sh(
        f"zpool destroy -f tank; zpool create -f -O 'user:note=c d' tank {disk}; zfs create 'tank/a b'; echo mine >'/tank/a b/mine'"
    )
    words = ("restore", "run", "photos", "--to", "tank", "--json")
    told = master.poolferry(*words, seconds=300).json
    assert told["outcome"] == "refused", told
    rename = re.match(r"(?:ssh [^;]*)?zfs rename [^;]*?(?=, and so on|;)", told["hint"])
    assert rename, told
    master.sh(rename[0])
    told = master.poolferry(*words, seconds=300).json
    assert "has to be unmounted for this" in told["why"], told
    master.sh(told["hint"].partition(";")[0])
    told = master.poolferry(*words, seconds=300).json
    for free in re.findall(r"unmount that \((.*?)\), and run", told["hint"]):
        master.sh(free)
        told = master.poolferry(*words, seconds=300).json
    assert told["outcome"] == "done", told
    (keeps,) = [line for line in told["warnings"] if "keeps user:note" in line]
    master.sh(keeps[keeps.index("zfs set ") :])
    assert master.sh("zfs get -Ho value user:note tank; cat /tank/one '/tank/a b/two'").lines == ("a b", "one", "two")
    assert master.sh("mount -t zfs -o zfsutil 'tank/a b_aside' /mnt; cat /mnt/mine").text == "mine"


def test_hints_around_a_restore_as_they_are_printed(master: Machine) -> None:
    """From a copy that was sent by other rules over a lost pool to what only the other copy holds."""
    for pool in ("tank", "vault", "other"):
        master.pool(pool, "300M", disk=True)
    master.sh("""set -e; zfs create vault/copies; zfs create other/copies; zfs create -o recordsize=1M -o mountpoint='/srv/my own' tank/photos
        head -c 2M /dev/urandom >'/srv/my own/one'; zfs snapshot tank/photos@a""")
    master.job("photos", JOB, targets=PLACE + '[place.other]\ndataset = "other/copies"\n')
    master.job("second", JOB.replace('"vault"', '"other"'))
    master.kitted("photos")
    master.kitted("second", at=("other",))
    assert master.poolferry("run", "photos", "second", seconds=300).code == 0

    # Another program gave the copy other rules for its streams.
    master.sh(
        "zfs set poolferry:flags=ce vault/copies/photos; head -c 2M /dev/urandom >'/srv/my own/two'; zfs snapshot tank/photos@b"
    )
    told = run(master)
    assert "held large blocks, and this one was sent without" in told["why"], told
    (flags,) = re.findall(r"`(zfs set poolferry:flags=Lce)` on the copy", told["hint"])
    master.sh(f"{flags} vault/copies/photos")
    assert run(master)["outcome"] == "done"

    # The pool is lost, and comes back from the older copy; its folder holds files meanwhile.
    rebuild(master)
    master.sh("mkdir -p '/srv/my own'; echo mine >'/srv/my own/mine'")
    words = ("restore", "run", "second", "--to", "tank/photos", "--json")
    told = master.poolferry(*words, seconds=300).json
    assert told["outcome"] == "waiting", told
    (place,) = re.findall(
        r"give it another place \((zfs set mountpoint=.*)\), and run the same command again", told["hint"]
    )
    master.sh(place)
    told = master.poolferry(*words, seconds=300).json
    assert told["outcome"] == "done", told
    assert master.sh("cd /srv; ls 'my own' 'my own.restored'").lines == (
        "my own:",
        "mine",
        "",
        "my own.restored:",
        "one",
    )

    # What was done after the older copy is in the other one alone.
    master.sh("zfs snapshot tank/photos@c")
    told = run(master)
    assert (told["outcome"], "that the source lost" in told["why"]) == ("refused", True), told
    (back,) = re.findall(
        r"bring back what is missing \(poolferry (restore run photos --path PATH --to FOLDER)\)", told["hint"]
    )
    typed = shlex.split(back.replace("PATH", "two").replace("FOLDER", "/srv/back"))
    assert master.poolferry(*typed, seconds=300).code == 0
    assert master.sh("find /srv/back -type f -size +1M").text != ""
    (aside,) = re.findall(r"begin again beside it: poolferry (run photos --aside)$", told["hint"])
    assert master.poolferry(*aside.split(), seconds=300).code == 0
    assert run(master)["outcome"] == "nothing-to-do"


def test_hints_for_an_ordinary_user_as_they_are_printed(master: Machine) -> None:
    """By root, for the user and the dataset of the message."""
    master.pool("tank")
    home = "/home/ferry/poolferry"
    master.sh("zfs create tank/photos")
    master.write(f"{home}/jobs/photos.toml", 'engine = "sanoid"\nsource = "tank/photos"\n[snapshots]\ndaily = 1\n')
    master.sh(f"chown -R ferry {home}")
    words = ("run", "photos", "--json", "--config", home, "--state", "/home/ferry/state")
    told = master.poolferry(*words, user="ferry", seconds=300).json
    allow = re.search(r"`(zfs allow -u USER \S+ DATASET)`", told["hint"])
    assert allow, told
    master.sh(allow[1].replace("USER", "ferry").replace("DATASET", "tank/photos"))
    told = master.poolferry(*words, user="ferry", seconds=300).json
    assert told["outcome"] == "done", told
