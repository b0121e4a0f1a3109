"""Commands that messages show: each that changes something names the test that types it, and all that stands in one is quoted."""

import ast
import re
from functools import cache
from pathlib import Path

import click
import pytest

from orchestrator.cli.terminal.root import root
from tests.hinted import ANY, CHANGING, HintText, texts, texts_of
from tests.syntax import walked

TESTS = Path(__file__).parent
# By the command as the code writes it, {} for what is put in: the test that types it in the state in which it is shown.
TYPED = {
    "chmod +x {}": "whole/test_file_hints.py::test_configuration_that_others_may_change",
    "chmod 600 {}": "whole/test_file_hints.py::test_a_secret_that_others_may_read",
    "chmod {}-w": "whole/test_file_hints.py::test_configuration_that_others_may_change",
    "chown -h {}": "whole/test_file_hints.py::test_configuration_that_others_may_change",
    "chown {}": "whole/test_file_hints.py::test_configuration_that_others_may_change",
    "chown {} {}": "whole/test_file_hints.py::test_a_key_that_others_may_read_and_a_history_that_is_damaged",
    "mv {} {}.broken": "whole/test_file_hints.py::test_a_key_that_others_may_read_and_a_history_that_is_damaged",
    "poolferry disks attach {}": "lab/test_disk_adopt.py",
    "poolferry disks eject {}": "lab/test_pool_mishaps.py",
    "poolferry disks enroll {} --set {} --name {}": "lab/test_disk_hints.py",
    "poolferry disks lost {}": "lab/test_disk_hints.py",
    "poolferry disks readopt {}": "lab/test_disk_hints.py",
    "poolferry points accept {}": "whole/test_problems.py",
    "poolferry points accept {} --point {}": "whole/test_problems.py",
    "poolferry rename {} {}": "whole/test_rename.py",
    "poolferry restore pool {} --plan": "lab/test_pool_rebuild.py",
    "poolferry restore run {} --path {} --to {}": "whole/test_several_folders.py",
    "poolferry restore run {} --to {}": "lab/test_zfs_restore.py::test_a_pool_that_was_made_anew_is_restored_before_anything_is_taken_of_it",
    "poolferry restore run {}{} --to {}": "lab/test_zfs_hints.py::test_hints_end_the_trouble_as_they_are_printed",
    "poolferry run {} --allow target-in-use": "whole/test_local_mirror.py",
    "poolferry run {} --allow target-new": "whole/test_local_guards.py",
    "poolferry run JOB --allow no-bookmarks": "lab/test_zfs_enemies.py",
    "poolferry run {} --allow no-bookmarks": "lab/test_zfs_enemies.py",
    "setfacl -b": "whole/test_file_hints.py::test_configuration_that_others_may_change",
    "umount {}": "whole/test_disks.py",
    "zfs allow {} {} {}": "lab/test_zfs_survey.py",
    "zfs create -p {}": "lab/test_zfs_hints.py::test_hints_about_a_copy_as_they_are_printed",
    "zfs inherit -S canmount {}": "lab/test_zfs_restore.py::test_what_waits_for_a_key_waits_alone_and_a_lost_key_is_said",
    "zfs inherit -S {} {}": "lab/test_zfs_hints.py::test_hints_about_a_copy_as_they_are_printed",
    "zfs load-key -a": "lab/test_zfs_hints.py::test_hints_in_a_pools_own_dataset_as_they_are_printed",
    "zfs load-key {}": "lab/test_zfs_restore.py::test_what_waits_for_a_key_waits_alone_and_a_lost_key_is_said",
    "zfs load-key {}{}": "lab/test_restore_chaos.py",
    "zfs mount {}": "lab/test_zfs_restore.py::test_what_waits_for_a_key_waits_alone_and_a_lost_key_is_said",
    "zfs rename {} {}": "lab/test_zfs_hints.py::test_hints_about_a_copy_as_they_are_printed",
    "zfs rename {}{} {}": "lab/test_sanoid.py",
    "zfs set canmount=noauto {}": "lab/test_zfs_hints.py::test_hints_end_the_trouble_as_they_are_printed",
    "zfs set {} {}": "lab/test_zfs_hints.py::test_hints_in_a_pools_own_dataset_as_they_are_printed",
    "zfs snapshot {}{}": "lab/test_zfs_hints.py::test_hints_about_a_copy_as_they_are_printed",
    "zfs unmount {}": "lab/test_zfs_hints.py::test_hints_end_the_trouble_as_they_are_printed",
    "zpool clear {}": "lab/test_zfs_survey.py::test_a_suspended_pool_is_told_at_once",
    "zpool destroy {}": "lab/test_pool_rebuild.py::test_a_pool_is_made_anew",
    "zpool export poolferry-NAME": "lab/test_disk_hints.py",
    "zpool import -f -N -R /mnt poolferry-NAME": "lab/test_disk_hints.py",
    "zpool export {}": "lab/test_zfs_hints.py::test_hints_about_a_copy_as_they_are_printed",
    "zpool import {}": "lab/test_zfs_hints.py::test_hints_about_a_copy_as_they_are_printed",
    "zpool online {} {}": "lab/test_pool_watch.py",
    "zpool replace {} {} NEW-DEVICE": "lab/test_pool_watch.py",
    "zpool set feature@bookmarks=enabled": "lab/test_zfs_enemies.py",
    "zpool set feature@extensible_dataset=enabled {}": "lab/test_zfs_survey.py::test_advice_names_what_is_wrong",
    "rm -- {}": "hostile/test_damaged_files.py::test_a_damaged_key_fails_each_run_until_its_hint_is_followed",
    "rm -r -- {}": "hostile/test_damaged_files.py::test_what_lies_in_place_of_a_key_goes_by_its_hint",
    "rm {}": "whole/test_file_hints.py::test_a_record_of_a_rename_that_nobody_can_read",
    "chmod go-w {}": "whole/test_file_hints.py::test_a_state_directory_into_which_somebody_laid_a_link",
    "mv {} {}": "whole/test_file_hints.py::test_a_job_of_a_kit_is_accepted",
    "mv -nT latest latest.old": "hostile/test_damaged_files.py::test_a_folder_in_place_of_latest_is_named_with_what_helps",
    "poolferry run {} --allow {}": "whole/test_other_machine.py",
    "zfs set snapdev=visible": "lab/test_zfs_verify.py::test_what_nobody_can_read_is_unproved",
    "usermod -u": "lab/test_pool_rebuild.py::test_a_pool_is_lost_without_a_word_and_one_copy_cannot_be_reached",
    "zfs inherit poolferry:flags {}": "lab/test_zfs_owner.py::test_an_owner_holds_up_no_other_dataset_and_takes_no_point",
    "zfs inherit {} {}": "lab/test_pool_watch.py::test_what_is_set_unwisely_is_mended_by_the_commands_that_are_printed",
    "zpool import -d /dev/disk/by-id {}": "lab/test_pool_watch.py::test_what_is_set_unwisely_is_mended_by_the_commands_that_are_printed",
    "chmod g-w": "whole/test_file_hints.py::test_configuration_that_the_members_of_its_group_may_change",
    "chown -hR --from={}{} {}": "lab/test_pool_rebuild.py::test_a_pool_is_lost_without_a_word_and_one_copy_cannot_be_reached",
    "groupmod -g": "lab/test_pool_rebuild.py::test_a_pool_is_lost_without_a_word_and_one_copy_cannot_be_reached",
    "kill {}": "whole/test_disks.py::test_who_uses_a_disk_is_named_and_once_it_has_ended_the_disk_can_be_ejected",
    "poolferry disks enroll DEVICE --set {}": "whole/test_disks.py::test_without_a_disk_a_job_waits_and_asks_for_one",
    "poolferry disks readopt NAME": "lab/test_disk_hints.py::test_a_pool_that_another_machine_did_not_let_go_is_taken_over_by_its_hint",
    "poolferry disks retire {}": "app/test_disk_status.py::test_two_disks_are_two_troubles_in_one_message",
    "poolferry restore run --from FOLDER --to FOLDER": "hostile/test_kits.py::test_a_byte_of_the_configuration_that_went_bad_is_found",
    "poolferry restore run --from {} --to DIR": "whole/test_lost_pieces.py::test_copies_come_back_without_the_file_of_their_job",
    "poolferry restore run {} --path PATH --to FOLDER": "lab/test_zfs_hints.py::test_hints_around_a_restore_as_they_are_printed",
    "zfs allow -u USER snapshot,destroy,mount DATASET": "lab/test_zfs_hints.py::test_hints_for_an_ordinary_user_as_they_are_printed",
    "zfs allow {} receive:append {}": "lab/test_zfs_gate.py::test_two_servers_keep_the_secrets_of_each_other_at_once",
    "zfs create -p -o mountpoint=none -o canmount=off {}": "lab/test_zfs_gate.py::test_two_servers_keep_the_secrets_of_each_other_at_once",
    "zfs load-key -r {}": "lab/test_zfs_drill.py::test_what_is_encrypted_is_tried_as_it_lies_until_its_key_is_there",
    "zfs mount -a": "lab/test_pool_rebuild.py::test_a_pool_whose_copies_are_far_away_on_a_disk_and_files_alone",
    "zfs set dedup=off {}": "lab/test_pool_watch.py::test_a_weak_vdev_and_large_dedup_tables_are_mended_by_the_commands_that_are_printed",
    "zfs set mountpoint={} {}": "lab/test_zfs_hints.py::test_hints_around_a_restore_as_they_are_printed",
    "zfs set poolferry:flags=Lce": "lab/test_zfs_hints.py::test_hints_around_a_restore_as_they_are_printed",
    "zfs snapshot -r {}": "lab/test_zfs_hints.py::test_hints_in_a_pools_own_dataset_as_they_are_printed",
    "zpool attach {} {} NEW-DEVICE": "lab/test_pool_watch.py::test_a_weak_vdev_and_large_dedup_tables_are_mended_by_the_commands_that_are_printed",
}  # fmt: skip
SHOWN_ALONE = ("app/demo.py",)  # a tale of commands, and no hints
# Words that need no quotes: numbers, options of ours, and the names of jobs, disks, sets and users, which hold no such letters.
_PLAIN = re.compile(
    r"(?:.*\.)?(?:job|disk|disks\[0\]\.name|job\.name|disk\.name|was\.name|rotation\.name|request\.name|pid|pids|seed|run|ABORT|GUARD|OTHER_MACHINE)"
    r"|.*(?:quote|hinted|shlex).*|.* if .* else .*|' '\.join\(\(?str\(.*|','\.join\(\w+\)|''\.join\(loose\)|os\.geteuid\(\)|_name\(user\)"
    r"|colon|number|flags|host|who|letter|downward|disk|name|before|now|path|page|whole|where|value|children|like"
)

# "poolferry goes by guid": a sentence, and no command.
_SENTENCES = frozenset(
    "always both carries chooses copies drills for goes holds job keeps machine makes needs never on or sends should shows takes targets".split()
)


def commands_of(text: HintText) -> list[str]:
    """Return the changing commands in a text."""
    return [command for command, _ in text.commands(CHANGING)]


@cache
def shown() -> dict[str, str]:
    """Return each changing command that the code shows, and where."""
    return {
        command: f"{text.file}:{text.line}"
        for text in texts()
        if text.file not in SHOWN_ALONE
        for command in commands_of(text)
    }


def test_each_command_that_changes_something_names_its_test() -> None:
    assert {command: where for command, where in shown().items() if command not in TYPED} == {}, "no test types these"
    assert TYPED.keys() - shown().keys() == set(), "no message shows these any more"


@pytest.mark.parametrize("named", sorted(set(TYPED.values())))
def test_the_test_is_there(named: str) -> None:
    file, _, name = named.partition("::")
    functions = (node for node in walked((TESTS / file).read_text()) if isinstance(node, ast.FunctionDef))
    assert not name or name in {each.name for each in functions if each.col_offset == 0}


def unquoted(text: HintText) -> list[str]:
    """Return what stands in a command of a text as it is, though a name may hold blanks."""
    return [
        f"{text.file}:{text.line}: {command}: {hole}"
        for command, holes in text.commands(ANY)
        for hole in holes
        if not _PLAIN.fullmatch(hole)
    ]


def test_names_and_paths_in_a_command_are_quoted() -> None:
    assert [found for text in texts() if text.file not in SHOWN_ALONE for found in unquoted(text)] == []


@pytest.mark.parametrize(
    "code", ['f"take one: zfs snapshot {root}@first"', 'f"`zpool clear {pool}`"', 'f"chmod 600 {folder}/key"']
)
def test_a_name_without_quotes_is_seen(code: str) -> None:
    (text,) = texts_of(f"hint = {code}", "x.py")
    assert unquoted(text)


# A command with a name and options, and then a word that is none of them: `poolferry run photos copies damaged files again`.
_GOES_ON = re.compile(
    r"(?<![`/])\bpoolferry (?:run|verify|plan|status|check|drill|points|restore run)(?: (?:\{\}|JOB|--[a-z-]+))+ (?!and |or |then )[a-z]+s\b"
)


def test_where_a_sentence_goes_on_after_a_command_it_stands_in_quotes() -> None:
    """Else nobody knows where it ends, and who types all of it is told of two jobs."""
    found = [
        (f"{text.file}:{text.line}", at[0])
        for text in texts()
        if text.file not in SHOWN_ALONE
        for at in _GOES_ON.finditer(text.text)
    ]
    assert found == []


def test_our_own_commands_and_their_options_are_there() -> None:
    """Each `poolferry ...` of a message is a command of the program, with the options that it has."""
    commands = [(command, f"{text.file}:{text.line}") for text in texts() for command, _ in text.commands(ANY)]
    assert [found for found in commands if found[0].startswith("poolferry ") and not _is_ours(found[0])] == []


def _is_ours(command: str) -> bool:
    words = command.split()[1:]
    if words[0].rstrip(".") in _SENTENCES:
        return True
    found: click.Command | None = root
    while isinstance(found, click.Group) and words and (below := found.get_command(click.Context(found), words[0])):
        found, words = below, words[1:]
    known = (
        {option for each in found.params for option in (*each.opts, *each.secondary_opts)} | {"--help"} if found else ()
    )
    return found is not root and all(word in known for word in words if re.fullmatch(r"--[a-z][a-z-]*", word))


def test_a_wrong_request_that_holds_a_command_holds_it_as_its_hint() -> None:
    """Else it ends with `see … --help`, below a sentence that has the command to type already."""
    command = re.compile(r"\.repeat\(|`\{|`poolferry |: poolferry ")
    root_folder = TESTS.parent / "orchestrator"
    calls = [
        (f"{path.relative_to(root_folder)}:{node.lineno}", node)
        for path in sorted(root_folder.rglob("*.py"))
        for node in walked(path.read_text())
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "WrongRequest"
    ]
    assert len(calls) > 50
    assert [at for at, node in calls if node.args and command.search(ast.unparse(node.args[0]))] == []
