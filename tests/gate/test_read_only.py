"""Requests of a key that only reads: what a run sends passes, and comes out as what the gate would send itself."""

import re

import pytest

from orchestrator.domain.command_line import ssh_argv
from orchestrator.domain.gate import Gate, GateRefusal
from orchestrator.domain.place import Host, Location
from orchestrator.domain.plan import Command, Effect
from orchestrator.domain.source_tree import SourceTree
from orchestrator.engines.rsync import script_commands
from orchestrator.engines.rsync.commands import rsync_version_command
from orchestrator.gate.read_only import admit_reading
from orchestrator.gate.request import parse_request
from orchestrator.process.link_wall import wall_off
from orchestrator.verify.pipelines import listing_command, settle_pipeline
from orchestrator.verify.source import attributes_command, source_command
from tests.gate.mutations import mutated

HOST = Host(user="root", name="nas", port=None)
GATE = Gate(reads=("/srv/photos",))
TREES = ("/srv/photos", "/srv/photos/a b", "/srv/photos/-x/it's", "/srv/photos/\udcff*")

OF_NO_PLACE = (
    rsync_version_command(HOST).argv,
    script_commands.survey_tools_command(HOST).argv,
    script_commands.survey_links_command(HOST).argv,
)


def server(*words: str) -> Command:
    return Command(argv=("rsync", "--server", "--sender", *words), effect=Effect.READS, host=HOST)


def questions(path: str) -> list[Command]:
    """Every kind of question of a run that copies from this path."""
    tree = Location(path=path, host=HOST)
    return [
        rsync_version_command(HOST),
        script_commands.survey_tools_command(HOST),
        script_commands.survey_links_command(HOST),
        script_commands.survey_source_command(SourceTree(root=tree)),
        script_commands.survey_source_command(SourceTree(root=tree), whole=True),
        script_commands.find_unheld_command(SourceTree(root=tree), one_filesystem=True, points=False),
        script_commands.sizes_command(tree, (b"a/b", b"\xff\n", b"-x")),
        script_commands.list_names_command(SourceTree(root=tree), one_filesystem=True),
        script_commands.list_sizes_command(SourceTree(root=tree), one_filesystem=False),
        source_command(SourceTree(root=tree), one_filesystem=True, attributes=True),
        attributes_command(tree, whole=True),
        attributes_command(tree),
        listing_command(tree, exclude=(b".~poolferry-partial~",)),
        listing_command(tree, one_filesystem=True, names=True),
        listing_command(tree, root_only=True),
        settle_pipeline(tree).stages[0],
        server("-nlHogDtpAXrxe.iLsfxCIvu", "--numeric-ids", ".", f"{path}/"),
        server("-lHogDtpAXrRxSe.iLsfxCIvu", "--timeout=300", "--bwlimit=51200", "--checksum-choice=xxh128", "--compress-choice=lz4",
               "--numeric-ids", "--files-from=-", "--from0", ".", f"{path}/"),
        server("-logDtpre.iLsfxCIvu", "--append", "--append", ".", f"{path}/large"),
    ]  # fmt: skip


def admitted(line: str) -> Command:
    return admit_reading(parse_request(line), GATE)


@pytest.mark.parametrize("path", TREES)
def test_each_question_is_answered_by_the_same_command(path: str) -> None:
    for asked in questions(path):
        answer = admitted(ssh_argv(asked)[-1])
        assert (answer.argv, answer.host, answer.effect) == (asked.argv, None, asked.effect), asked


@pytest.mark.parametrize("path", TREES)
def test_the_far_half_of_a_walled_rsync_is_answered_by_rsync_itself(path: str) -> None:
    """The gate has a wall of its own, for the tree that the words of ours name."""
    copy = Command(argv=("rsync", "-a", "--", f"nas:{path}/", "/backup/"), effect=Effect.WRITES)
    started = next(word for word in wall_off(copy).argv if word.startswith("--rsync-path=")).partition("=")[2]
    words = "--server --sender -lHogDtpre.iLsfxCIvu --numeric-ids . /proc/self/fd/8/"
    answer = admitted(f"{started} {words}")
    assert answer.argv == ("rsync", *words.split()[:-1], f"{path}/")
    for line in (f"{started} {words}", f"{started} --server --sender -le.L . /etc/", started):
        with pytest.raises(GateRefusal):
            admitted(line.replace("/srv/photos", "/etc"))


@pytest.mark.parametrize("path", ["/srv", "/srv/photos2", "/srv/photos/../x", "/srv/photos//x", "/srv/photos/./x", "srv/photos",
                                  "/", "", "/etc", "/srv/photosx/..", "../srv/photos", "/srv/photos/.."])  # fmt: skip
def test_another_path_is_refused(path: str) -> None:
    for asked in questions(path if path.startswith("/") else f"/{path}"):
        line = ssh_argv(asked)[-1]
        if asked.argv not in OF_NO_PLACE:
            with pytest.raises(GateRefusal):
                admitted(line.replace(f"/{path}", path) if not path.startswith("/") else line)


HOSTILE = (
    "true", "id", "cat /etc/shadow", "rm -rf /srv/photos", "bash -i", "/bin/sh", "scp -f /srv/photos", "sftp-server",
    "internal-sftp", "rsync", "rsync -a /srv/photos /tmp/x", "rsync --daemon", "rsync --server . /srv/photos",
    "rsync --server -le.L . /srv/photos", "rsync --server --sender -lLe.L . /srv/photos/",
    "rsync --server --sender -lse.L . /srv/photos/", "rsync --server --sender -le.L --copy-unsafe-links . /srv/photos/",
    "rsync --server --sender -le.L --remove-source-files . /srv/photos/",
    "rsync --server --sender -le.L --files-from=/etc/shadow . /srv/photos/",
    "rsync --server --sender -le.L --log-file=/etc/x . /srv/photos/",
    "rsync --server --sender -le.L . /srv/photos/ /etc/", "rsync --server --sender -le.L /etc/ . /srv/photos/",
    "rsync --server --sender -le.L . '/srv/photos/ /etc'/../../etc", "rsync --server --sender -le.L --rsh=id . /srv/photos/",
    "rsync --server --sender -le.L -M--x . /srv/photos/", "rsync --server --sender --secluded-args . /srv/photos/",
    "rsync --server --sender . /srv/photos/", "rsync --server --sender", "rsync --server --sender -le.L", "sync", "sync -f",
    "sync /srv/photos", "sync -f /srv/photos /etc", "find", "find /srv/photos", "find /srv/photos/. -delete",
    "find /srv/photos/. -fprintf /etc/x y", "find /srv/photos/. -exec sh -c id ;", "find -L /srv/photos/. -printf x",
    "sh -c x look-at-source.sh", "sh -c x look-at-source.sh /srv/photos", "sh -c x look-at-source.sh /srv/photos whole more",
    "sh -c x look-at-source.sh /srv/photos other", "sh -c x sizes.sh /srv/photos", "sh -c x sizes.sh /srv/photos /etc/shadow",
    "sh -c x sizes.sh /srv/photos ./../../etc/shadow", "sh -c x sizes.sh /srv/photos ./a ../b",
    "sh -c x list-source.sh /srv/photos one-filesystem attributes '%f'", "sh -c x list-source.sh /srv/photos '' ''",
    "sh -c x remove.sh /srv/photos x", "sh -c x publish.sh /srv/photos x y", "sh -c x prepare.sh /srv/photos x 1 work",
    "sh -c x find-unheld.sh /srv/photos x y", "sh -c x list-attributes.sh /srv/photos some", "sh -c x look-at-tools.sh more", "sh -c x look-at-links.sh more",
    "flock /srv/photos sh", "unshare --mount sh -c x look-at-source.sh /srv/photos whole", "cat -- /srv/photos/a",
    "poolferry status", "zfs list", "env -S id", "env id",
)  # fmt: skip


@pytest.mark.parametrize("line", HOSTILE)
def test_what_is_no_question_of_ours_is_refused(line: str) -> None:
    with pytest.raises(GateRefusal):
        admitted(line)


_PARTS = (
    "/etc/shadow", "..", "-delete", "-exec", ";", "--", "--server", "--sender", "-L", "--copy-links", "sh", "-c", "\0", "\n", "",
    "/srv/photos", "/srv/photos/../..", "-printf", "%p", ".", "--files-from=/x", "-s", "quick", "all", "*", "$(id)", "`id`", "\udcff",
)  # fmt: skip


def test_whatever_is_admitted_stays_below_the_folder() -> None:
    """10,000 requests, made of those of a run by exchanging, dropping and adding words."""
    lines = [parse_request(ssh_argv(each)[-1]) for path in TREES for each in questions(path)]
    passed = 0
    for request in mutated(lines, _PARTS, seed=1):
        try:
            answer = admit_reading(request, GATE)
        except GateRefusal:
            continue
        passed += 1
        words = [word for word in answer.argv if "\n" not in word or word.startswith("/")]  # scripts are our own text
        assert not any(word.startswith("/") and not re.match(r"/srv/photos(/|$)", word) for word in words), answer.argv
        assert not any(".." in word.split("/") for word in words), answer.argv
        assert answer.effect is Effect.READS
    assert passed > 100


FOLDERS = Gate(reads=("/home", "/etc/app", "/srv/www"))
SEVERAL = SourceTree(root=Location(path="/", host=HOST), parts=("home/a b", "etc/app", "srv/www/-x"))


def questions_of_several(tree: SourceTree) -> list[Command]:
    """Every kind of question of a run that copies these folders."""
    paths = [f"/./{part}" for part in tree.parts]
    return [
        script_commands.survey_source_command(tree),
        script_commands.find_unheld_command(tree, one_filesystem=True, points=False),
        script_commands.sizes_command(tree.root, tuple(f"{part}/x".encode() for part in tree.parts)),
        script_commands.list_names_command(tree, one_filesystem=True),
        script_commands.list_sizes_command(tree, one_filesystem=False),
        source_command(tree, one_filesystem=True, attributes=True),
        server("-nlHogDtpAXrRxe.iLsfxCIvu", "--numeric-ids", ".", *paths),
    ]


def test_several_folders_are_read_and_each_must_be_one_of_the_gates() -> None:
    for asked in questions_of_several(SEVERAL):
        answer = admit_reading(parse_request(ssh_argv(asked)[-1]), FOLDERS)
        assert (answer.argv, answer.host) == (asked.argv, None), asked
    for other in ("etc", "etc/apps", "srv/www/../x", "srv//www", ""):
        for asked in questions_of_several(SourceTree(root=SEVERAL.root, parts=("home", other))):
            with pytest.raises(GateRefusal):
                admit_reading(parse_request(ssh_argv(asked)[-1]), FOLDERS)


@pytest.mark.parametrize("line", [
    "rsync --server --sender -le.L . /./home /./etc/app", "rsync --server --sender -lRe.L . /home /etc/app",
    "rsync --server --sender -lRe.L --files-from=- . /./home /./etc/app", "rsync --server --sender -lRe.L . /./home /etc/shadow",
    "rsync --server --sender -lRe.L --rsh=id . /./home /./home", "rsync --server --sender -lRe.L --files-from=- . /",
    "rsync --server --sender -lRe.L --numeric-ids /./home", "sh -c x list-source.sh /home '' '' '%p' ./home",
    "sh -c x find-unheld.sh /etc '' '' home", "sh -c x sizes.sh / ./etc/shadow", "find /./home /./etc -printf x",
    "sh -c x list-source.sh / '' '' '%p' ./home",
])  # fmt: skip
def test_several_folders_open_nothing_else(line: str) -> None:
    with pytest.raises(GateRefusal):
        admit_reading(parse_request(line), FOLDERS)
