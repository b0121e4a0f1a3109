"""Streams between real pools: whole, carried on, cut and resumed, stale in each way, and what real failures are called."""

import pytest

from orchestrator.domain.errors import (
    BaseGone,
    OrchestratorError,
    OutsideError,
    PermissionDenied,
    QuotaReached,
    TargetFull,
    TokenStale,
    VerificationFailed,
)
from orchestrator.domain.job import PipeOptions
from orchestrator.domain.place import Host, Location
from orchestrator.domain.plan import Command, Decision, Effect, NothingToDo, Plan, Refusal
from orchestrator.domain.units import Bytes
from orchestrator.engines.zfs import ENGINE
from orchestrator.engines.zfs.commands import commands
from orchestrator.engines.zfs.commands.commands import CommandHost
from orchestrator.engines.zfs.model import DatasetType, SendFlags, SnapshotPresent
from orchestrator.engines.zfs.survey.confirm import confirm_snapshots, estimate_sizes
from orchestrator.engines.zfs.survey.resume_token import parse_token
from orchestrator.engines.zfs.survey.survey import survey
from tests.engines.zfs.sides import ASKED, COPY, SOURCE, job, side
from tests.lab.common import ENCRYPTED, GIVE_KEY, Machine
from tests.lab.guest_writer import GuestWriter, carry
from tests.lab.laboratory import Pair
from tests.lab.pools import guids

HERE = CommandHost()
COPIED = "vault/copies/photos"
SHARED = ("-oControlMaster=auto", "-oControlPath=/run/%C", "-oControlPersist=120")


def pools(master: Machine, backup: Machine | None = None) -> None:
    """tank/photos with 3 MiB in a snapshot; vault."""
    master.pool("tank")
    (backup or master).pool("vault")
    master.sh("zfs create tank/photos && head -c 3M /dev/urandom > /tank/photos/a && zfs snapshot tank/photos@one")


def values(machine: Machine, dataset: str, *names: str) -> tuple[str, ...]:
    """Properties, each with its source."""
    told = machine.sh(["zfs", "get", "-Hp", "-o", "value,source", ",".join(names), dataset]).lines
    return tuple(line.replace("\t", " ") for line in told)


@pytest.mark.flavours("trixie", "bookworm")
def test_a_tree_is_carried_and_carried_on(master: Machine) -> None:
    pools(master)
    master.sh(
        "zfs create 'tank/photos/a b:c' && zfs create -V 8M tank/photos/-v && zfs set quota=200M tank/photos && "
        "zfs create -o mountpoint=/etc/photos -o sharenfs=off -o compression=lz4 -o user:x=y tank/photos/here && "
        "zfs snapshot -r 'tank/photos@two -x:y'"
    )
    hands = GuestWriter(master)
    first = carry(hands, job())
    assert [type(decision) for decision in first] == [Plan, NothingToDo]
    assert guids(master, "tank/photos") == guids(master, COPIED)
    assert values(master, f"{COPIED}/here", "mountpoint", "canmount", "readonly", "compression", "user:x", "poolferry:flags") == (
        f"/{COPIED}/here default", "noauto local", "on local", "lz4 received", "y received", "Lce local",
    )  # fmt: skip
    assert master.sh(f"zfs get -H -o received mountpoint {COPIED}/here").text == "/etc/photos"
    assert values(master, COPIED, "quota") == ("0 local",)
    assert master.sh(f"zfs get -Hp -o received quota {COPIED}").text == str(200 << 20)  # kept for a restore
    assert values(master, f"{COPIED}/-v", "readonly", "refreservation") == ("on local", "0 local")
    assert not any(line.startswith("vault/copies") for line in master.sh("zfs mount").lines)
    marks = master.sh("zfs list -H -r -t bookmark -o name tank; zfs holds -rH tank/photos@one").lines
    assert len(marks) == 4
    assert all("#poolferry_" in mark and "held" not in mark for mark in marks)
    (plan,) = (decision for decision in first if isinstance(decision, Plan))
    assert (plan.current, plan.brings) == ("two -x:y", True)
    # On: with all between, a clone, and one dataset of which only the bookmark is left.
    master.sh(
        "zfs snapshot -r tank/photos@three && zfs snapshot -r tank/photos@four && "
        "zfs clone tank/photos/here@three tank/photos/clone && zfs snapshot tank/photos/clone@c && "
        "zfs destroy 'tank/photos/a b:c@two -x:y'"
    )
    second = carry(hands, job())
    assert [type(decision) for decision in second] == [Plan, NothingToDo]
    assert any("send -PLce -i 'tank/photos/a b:c#poolferry_" in line for line in hands.ran)
    assert guids(master, "tank/photos").items() <= guids(master, COPIED).items()
    assert values(master, f"{COPIED}/clone", "origin", "canmount") == (f"{COPIED}/here@three -", "noauto local")
    before = len(hands.ran)
    assert [type(decision) for decision in carry(hands, job())] == [NothingToDo]
    assert len(hands.ran) - before == 2


@pytest.mark.flavours("trixie", long=["bookworm"])
def test_a_first_send_that_was_cut_goes_on(master: Machine, flavour: str) -> None:
    pools(master)
    master.sh("zfs create vault/copies && zfs snapshot tank/photos@two && zfs destroy tank/photos@two")
    receive = commands.receive_arguments(COPIED, DatasetType.FILESYSTEM, first=True, properties=True, flags=SendFlags())
    line = " ".join(("zfs", *receive))
    receiving = master.popen(f"(zfs send -PLcep tank/photos@one | head -c 2000000; exec sleep 600) | exec {line}")
    hands = GuestWriter(master)

    def told() -> str:
        return master.sh(f"zfs get -H -o value receive_resume_token {COPIED}", check=False).text

    receiving.until(lambda: (token := parse_token(told())) and token.bytes > 500_000, 60)
    seen = survey(job(), ASKED, hands)
    assert seen.target.datasets[""].partial
    assert list(seen.receiving) == [""]
    (token,) = seen.tokens.values()
    assert token is not None
    assert (token.to_name, token.from_guid, token.flags.compressed) == ("tank/photos@one", None, True)
    assert token.to_guid == seen.source.datasets[""].snapshots[0].guid
    shown = master.sh(["zfs", "send", "-nvP", "-t", token.text]).text.replace("\t", "")
    for name, number in (
        ("object", token.object),
        ("offset", token.offset),
        ("bytes", token.bytes),
        ("toguid", token.to_guid),
    ):
        assert f"{name} = 0x{number:x}\n" in shown + "\n"
    ended, *rest = carry(hands, job())
    assert isinstance(ended, Plan)
    assert "end process" in ended.steps[0].action
    receiving.kill(9)  # the sender would still wait for its reader's next word
    assert any("zfs send -P -t 1-" in line for line in hands.ran)
    assert isinstance(rest[-1], NothingToDo)
    assert guids(master, "tank/photos") == guids(master, COPIED)
    assert values(master, COPIED, "readonly", "canmount", "poolferry:flags") == (
        "on local",
        "noauto local",
        "Lce local",
    )
    assert master.sh("zfs holds -H tank/photos@one").text == ""


def stream(words: tuple[str, ...], *received: str) -> tuple[Command, Command]:
    """A send straight into a receive."""
    sending = commands.send_command(words, side(SOURCE), PipeOptions())
    return sending, commands.zfs_command("receive", "-s", "-u", *received, effect=Effect.WRITES, where=HERE)


@pytest.mark.flavours("trixie", long=["bookworm"])
def test_each_way_a_token_goes_stale_has_its_sentence(master: Machine) -> None:
    pools(master)
    hands = GuestWriter(master)
    carry(hands, job(properties=False))
    master.sh("head -c 3M /dev/urandom > /tank/photos/b && zfs snapshot tank/photos@two")
    master.sh(f"zfs send -Lce -i @one tank/photos@two | head -c 2000000 | zfs receive -s -u {COPIED}", check=False)
    token = master.sh(f"zfs get -H -o value receive_resume_token {COPIED}").text
    told = parse_token(token)
    assert told is not None
    assert (told.to_name, told.flags) == ("tank/photos@two", SendFlags(large=False))

    def resumed(text: str = token) -> OrchestratorError:
        return hands.fails(*stream(commands.resumed_send_arguments(text), COPIED))

    corrupt = resumed(token.replace("-789c", "-789d"))
    assert (type(corrupt), corrupt.why[:28]) == (TokenStale, "the resume token cannot be u")
    plain = hands.fails(*stream(("send", "-i", "@one", "tank/photos@two"), COPIED))
    assert (type(plain), plain.why[:32]) == (TokenStale, "the target holds what a cut rece")
    # The base's bookmark alone is enough; without it the base is gone.
    master.sh("zfs destroy tank/photos@one && zfs send -nt " + token)
    master.sh("zfs list -H -o name -t bookmark -r tank | xargs -n 1 zfs destroy")
    assert "what a cut send starts from is gone" in resumed().why
    master.sh("zfs destroy tank/photos@two && zfs snapshot tank/photos@two")
    assert "another one now" in resumed().why
    master.sh("zfs destroy tank/photos@two")
    gone = resumed()
    assert (type(gone), "is gone from the source" in gone.why) == (TokenStale, True)
    assert token not in str(gone)
    for _ in range(2):
        assert hands.one(commands.abort_command(COPIED, HERE)).well
    assert master.sh(f"zfs get -H -o value receive_resume_token {COPIED}").text == "-"


@pytest.mark.flavours("trixie", long=["bookworm"])
def test_what_real_failures_are_called(master: Machine) -> None:
    pools(master)
    hands = GuestWriter(master)
    carry(hands, job())
    master.sh("head -c 30M /dev/urandom > /tank/photos/b && zfs snapshot tank/photos@two")
    master.sh(f"zfs create -o quota=10M vault/tight && zfs create tank/empty && zfs snapshot tank/empty@e && {ENCRYPTED} tank/sealed && "
              "zfs snapshot tank/sealed@s")  # fmt: skip
    whole, more = ("send", "tank/photos@two"), ("send", "-i", "@one", "tank/photos@two")

    def fails(words: tuple[str, ...], *received: str, kind: type[OrchestratorError], says: str) -> None:
        error = hands.fails(*stream(words, *received))
        assert type(error) is kind, error
        assert says in error.why, error.why

    fails(whole, "vault/tight/x", kind=QuotaReached, says="a quota on the target is reached")
    fails(("send", "tank/photos@gone"), "vault/x", kind=BaseGone, says="dataset does not exist")
    fails(whole, "vault/none/x", kind=BaseGone, says="does not exist")
    fails(whole, COPIED, kind=BaseGone, says="something of that name is there")
    fails(whole, "-F", COPIED, kind=BaseGone, says="the target has got snapshots")
    fails(("send", "-w", "tank/sealed@s"), "-F", "vault/copies", kind=OutsideError, says="one side is encrypted")
    fails(("send", "-p", "tank/sealed@s"), "vault/x", kind=OutsideError, says="only with a raw stream")
    # Snapshots of the target's own are no hindrance while nothing was written between.
    master.sh("zfs send tank/photos@one | zfs receive -u vault/y && zfs snapshot vault/y@own")
    assert hands.one(*stream(more, "vault/y")).well
    master.sh(
        f"zfs snapshot {COPIED}@own && zfs set readonly=off {COPIED} && zfs mount {COPIED} && touch /{COPIED}/new"
    )
    fails(more, COPIED, kind=BaseGone, says="was written to")
    master.sh(f"zfs destroy {COPIED}@one")
    fails(more, COPIED, kind=BaseGone, says="is not the one that this stream starts from")
    master.sh("zfs unload-key -a 2>/dev/null; zfs unmount tank/sealed; zfs unload-key tank/sealed")
    fails(("send", "tank/sealed@s"), "vault/x", kind=PermissionDenied, says="a key is not loaded")
    weak = GuestWriter(master, user="ferry")
    denied = weak.fails(*stream(whole, "vault/x"))
    assert isinstance(denied, PermissionDenied), denied
    refused = weak.fails(*stream(whole, "vault/x")[:1], commands.abort_command("vault/x", CommandHost(sudo=True)))
    assert isinstance(refused, PermissionDenied), refused


def test_a_pool_without_room_keeps_what_arrived(master: Machine) -> None:
    master.pool("tank")
    master.pool("vault", "128M")
    master.sh("zfs create tank/photos && head -c 120M /dev/urandom > /tank/photos/a && zfs snapshot tank/photos@one")
    hands = GuestWriter(master)
    with pytest.raises(TargetFull, match="no space left"):
        carry(hands, job())
    seen = survey(job(), ASKED, hands)
    assert [token.to_name for token in seen.tokens.values() if token] == ["tank/photos@one"]
    assert seen.held == {"": ("one",)}


@pytest.mark.flavours("trixie", "bookworm")
@pytest.mark.long
def test_bookmarks_and_holds_are_made_and_let_go_again_and_again(master: Machine) -> None:
    pools(master)
    hands = GuestWriter(master)
    source, weak = side(SOURCE), side(SOURCE, programs=False)
    marks = tuple(("tank/photos", "@one", f"m{number}") for number in range(20))
    for place in (source, weak, source):
        (keep,) = commands.bookmark_commands(marks, place)
        assert hands.one(keep).well
    assert len(master.sh("zfs list -H -t bookmark -o name -r tank").lines) == 20
    for place in (source, weak):
        # One that is gone since the look stops no other: its own send says so.
        (keep,) = commands.bookmark_commands((("tank/photos", "@gone", "x"), *marks), place)
        assert hands.one(keep).well
    assert len(master.sh("zfs list -H -t bookmark -o name -r tank").lines) == 20
    for build, holds in ((commands.hold_commands, 1), (commands.release_commands, 0)):
        for _ in range(2):
            (command,) = build("tag", ("tank/photos@one",), source)
            assert hands.one(command).well
            assert len(master.sh("zfs holds -H tank/photos@one").lines) == holds
    (hold,) = commands.hold_commands("tag", ("tank/photos@gone", "tank/photos@one"), source)
    assert hands.one(hold).well
    assert len(master.sh("zfs holds -H tank/photos@one").lines) == 1
    names = tuple(f"tank/photos#{mark}" for _, _, mark in marks)
    for _ in range(2):
        (drop,) = commands.destroy_bookmark_commands(names, source)
        assert hands.one(drop).well
    assert master.sh("zfs list -H -t bookmark -o name -r tank").text == ""


@pytest.mark.flavours("trixie", "bookworm")
def test_bookmarks_are_destroyed_together(master: Machine) -> None:
    """By the program alone, without what the script does where it fails; and never a snapshot."""
    pools(master)
    names = [f"tank/photos#{number}" for number in range(5)]
    master.sh("; ".join(f"zfs bookmark tank/photos@one {name}" for name in names))
    program = "PYTHONPATH=/mnt/poolferry /opt/poolferry/bin/python -PS -c 'from orchestrator.engines.zfs.bookmark_removal import program; program()'"
    assert master.sh(f"{program} tank/photos@one {names[0]}", check=False).code == 1
    assert master.sh(f"{program} nopool/photos#1 {names[0]}", check=False).code == 1
    assert len(master.sh("zfs list -H -t bookmark -o name -r tank").lines) >= 4
    for _ in range(2):
        master.sh(f"{program} tank/photos#gone {' '.join(names)}")
        assert master.sh("zfs list -H -t bookmark -o name -r tank").text == ""
    assert master.sh("zfs list -H -t snapshot -o name tank/photos@one").lines


def test_a_stream_that_was_passed_over_is_no_proof(master: Machine) -> None:
    """zfs receive ends with 0 when a snapshot of that name is there, whatever is in it."""
    pools(master)
    hands = GuestWriter(master)
    carry(hands, job())
    master.sh(f"zfs snapshot tank/photos@two && zfs snapshot {COPIED}@two")
    result = hands.one(*stream(("send", "-i", "@one", "tank/photos@two"), COPIED))
    guid = int(master.sh("zfs get -Hp -o value guid tank/photos@two").text)
    promise = SnapshotPresent(dataset=COPY, guid=guid, snapshot="two")
    if result.well:
        with pytest.raises(VerificationFailed, match="has no snapshot two with guid"):
            confirm_snapshots((promise,), hands)
    other = SnapshotPresent(dataset=COPY, guid=int(guids(master, COPIED)["@one"]), snapshot="one")
    with pytest.raises(VerificationFailed, match="has two after one, from elsewhere"):
        confirm_snapshots((other,), hands)


@pytest.mark.long
def test_a_placeholder_becomes_a_copy_when_its_dataset_is_included(master: Machine) -> None:
    pools(master)
    master.sh("zfs create tank/photos/mid && zfs create tank/photos/mid/deep && zfs snapshot -r tank/photos@two && "
              "zfs destroy tank/photos/mid@two")  # fmt: skip
    hands = GuestWriter(master)
    carry(hands, job())
    assert values(master, f"{COPIED}/mid", "poolferry:placeholder", "canmount") == ("on local", "off local")
    master.sh("head -c 1M /dev/urandom > /tank/photos/mid/a && zfs snapshot tank/photos/mid@three")
    first = carry(hands, job())[0]
    assert isinstance(first, Plan)
    assert [step.effect for step in first.steps if step.copies] == [Effect.DESTROYS]
    assert guids(master, "tank/photos") == guids(master, COPIED)
    assert values(master, f"{COPIED}/mid", "poolferry:placeholder", "canmount", "readonly") == (
        "on inherited from vault/copies", "noauto local", "on local",
    )  # fmt: skip


def _refused(decisions: tuple[Decision, ...]) -> bool:
    last = decisions[-1]
    return isinstance(last, Refusal) or (isinstance(last, Plan) and bool(last.refusals))


def test_encrypted_datasets_travel_as_they_lie(master: Machine) -> None:
    pools(master)
    master.sh(f"{ENCRYPTED} tank/photos/sealed && head -c 1M /dev/urandom > /tank/photos/sealed/a && zfs snapshot tank/photos/sealed@s "
              "&& zfs unmount tank/photos/sealed && zfs unload-key tank/photos/sealed")  # fmt: skip
    hands = GuestWriter(master)
    carry(hands, job())
    assert guids(master, "tank/photos") == guids(master, COPIED)
    assert values(master, f"{COPIED}/sealed", "encryption", "keystatus", "poolferry:flags") == (
        "aes-256-gcm -", "unavailable -", "wLce local",
    )  # fmt: skip
    master.sh("zfs snapshot -r tank/photos@next")
    assert isinstance(carry(hands, job())[-1], NothingToDo)
    assert guids(master, "tank/photos") == guids(master, COPIED)
    # Readable on the target: only with consent, and then without properties, which zfs would not send.
    master.sh(f"{GIVE_KEY} | zfs load-key tank/photos/sealed")
    master.sh("zfs snapshot -r tank/photos@open")
    assert _refused(carry(hands, job(raw="no"), "aside"))
    carry(hands, job(raw="no", may_decrypt=True), "aside")
    assert values(master, f"{COPIED}/sealed", "encryption") == ("off default",)


@pytest.mark.long
def test_an_ordinary_user_carries_with_rights_or_with_sudo(master: Machine) -> None:
    pools(master)
    master.sh("zfs create vault/copies && zfs allow ferry bookmark,destroy,hold,release,send,mount tank/photos && "
              "zfs allow ferry canmount,compression,create,destroy,mount,readonly,receive,rename,rollback,userprop,mountpoint,quota,"
              "refquota,reservation,refreservation,sharenfs,sharesmb vault")  # fmt: skip
    _carries(master, sudo=False)
    master.sh("zfs unallow ferry tank/photos && zfs unallow ferry vault && zfs destroy -r vault/copies && zfs create vault/copies && "
              "zfs destroy tank/photos@two && zfs list -H -o name -t bookmark -r tank | xargs -n 1 zfs destroy")  # fmt: skip
    master.write("/etc/sudoers.d/ferry", "ferry ALL=(root) NOPASSWD: /usr/sbin/zfs, /usr/bin/kill\n", mode=0o440)
    _carries(master, sudo=True)


def _carries(master: Machine, *, sudo: bool) -> None:
    hands = GuestWriter(master, user="ferry")
    requested = job(sudo=sudo)
    carry(hands, requested)
    master.sh("zfs snapshot tank/photos@two")
    assert isinstance(carry(hands, requested)[-1], NothingToDo)
    assert guids(master, "tank/photos") == guids(master, COPIED)
    assert values(master, COPIED, "readonly", "canmount", "poolferry:flags") == (
        "on local",
        "noauto local",
        "Lce local",
    )
    assert len(master.sh("zfs list -H -t bookmark -o name -r tank; zfs holds -H tank/photos@one").lines) == 1
    assert any("sudo -n zfs send" in line for line in hands.ran) is sudo
    plan = ENGINE.plan(requested, survey(requested, ASKED, hands), ASKED)
    assert isinstance(plan, NothingToDo)


@pytest.mark.long
def test_two_machines_push_and_pull(pair: Pair) -> None:
    master, backup = pair
    pools(master, backup)
    master.sh("zfs create 'tank/photos/a b:c' && zfs snapshot -r 'tank/photos@two -x:y'")
    there, here = Host(name="backup", user="root"), Host(name="master", user="root")
    pushing, pulling = GuestWriter(master, ssh_options=SHARED), GuestWriter(backup, ssh_options=SHARED)
    limited = PipeOptions(rate_limit=Bytes(8 << 20), buffer=Bytes(4 << 20))
    carry(pushing, job(place=there, pipe=limited))
    assert guids(master, "tank/photos") == guids(backup, COPIED)
    backup.sh("mv /usr/bin/mbuffer /usr/bin/gone && zfs destroy -r vault/copies")
    pull = job(source=Location(path="tank/photos", host=here))
    carry(pulling, pull)
    assert guids(master, "tank/photos") == guids(backup, COPIED)
    assert not any(line.rpartition(" | ")[2].startswith("mbuffer") for line in pulling.ran)
    # A send that fails there is no success here, and the size of one that is to come is known.
    master.sh("head -c 1M /dev/urandom > /tank/photos/b && zfs snapshot tank/photos@three")
    plan = ENGINE.plan(pull, survey(pull, ASKED, pulling), ASKED)
    assert isinstance(plan, Plan)
    (send,) = (step for step in estimate_sizes(plan, pulling).steps if step.copies)
    assert send.expected
    assert 1 << 20 <= send.expected < 2 << 20
    master.sh("zfs destroy tank/photos@three")
    error = pulling.fails(*send.work.stages)  # type: ignore[union-attr]
    assert isinstance(error, BaseGone), error
    assert "tank/photos@three" in error.why
