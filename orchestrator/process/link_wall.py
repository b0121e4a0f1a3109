"""The wall against links: each rsync is started so that no link in a tree leads it, or its far half, anywhere else.

An owner of a folder may exchange it for a link at any moment, also in the middle of a path that rsync was given. So rsync gets its
trees by open folders, in mounts that follow no link, see `scripts/without-links.pl`; a machine that cannot do that starts it as it is.
What rsync says of its trees is said with their own paths.
"""

import os
import re
import shlex
from collections.abc import Mapping
from enum import Enum

from orchestrator.domain.command_line import is_script, pack_script
from orchestrator.domain.fast_dataclass import dataclass
from orchestrator.domain.plan import Command, Effect
from orchestrator.process.scripts import printing_function, script, script_command

_PERL = "/usr/bin/perl"
# Numbers that nothing else here has; the far half is started by sh, which knows those of one digit alone.
_ROOT, _FIRST = 201, 202
FAR_ROOT, _FAR_FIRST = 7, 8
_STARTERS = ("in-tree.sh", "in-folder.sh", "in-subfolder.sh")  # they go into a folder, and become a program there
_BESIDES = (
    "--link-dest=",
    "--copy-dest=",
    "--partial-dir=",
    "--temp-dir=",
)  # options whose values are paths of the receiving side
_FAR = re.compile(r"(?P<host>(?:[^@/:]*@)?(?:\[[^\]]*\]|[^:/\[]*):)(?P<path>.*)", re.DOTALL)
_FAR_RSYNC = "--rsync-path="
_LEADS_ON_BEGINS = b"without-links.pl: links lead on ("
_LEADS_ON = re.compile(rb"without-links\.pl: links lead on \((\d+)\)\n")


class Side(Enum):
    """A half of an rsync: the one that is started here, or the one that it starts on a host."""

    HERE = "here"
    THERE = "there"


@dataclass(frozen=True, slots=True, kw_only=True)
class WalledCommand:
    """A command line behind the wall. `names`: the paths by which it knows its trees, and those by which people do.

    `open`: the sides of which it is known before the start that links lead on there.
    """

    argv: tuple[str, ...]
    names: Mapping[str, str]
    open: frozenset[Side] = frozenset()


def wall_off(command: Command) -> WalledCommand:
    """Return the command line that starts this program; that of an rsync over trees starts it behind the wall."""
    at = _rsync_at(command)
    if at is None:
        return WalledCommand(argv=command.argv, names={})
    if not os.access(_PERL, os.X_OK):
        return WalledCommand(
            argv=command.argv, names={}, open=frozenset({Side.HERE}) if os.geteuid() == 0 else frozenset()
        )
    here, there = _TreeAliases(_ROOT, _FIRST), _TreeAliases(FAR_ROOT, _FAR_FIRST)
    words = _rename_trees(command.argv[at + 1 :], here, there)
    argv = (_PERL, "-e", _program(), "--", *here.words, "--", *command.argv[: at + 1], *words)
    return WalledCommand(argv=argv, names=here.shown | there.shown)


def show_names(said: bytes, names: Mapping[str, str]) -> bytes:
    """Return what a program said with the paths by which people know its trees, their odd bytes as rsync shows them."""
    for alias, path in names.items():
        shown = re.sub(rb"[\x00-\x1f\x7f]|\\(?=#\d{3})", _escaped, os.fsencode(path).rstrip(b"/"))
        said = said.replace(alias.encode() + b"/", shown + b"/").replace(alias.encode(), shown or b"/")
    return said


def take_out_notes(said: bytes) -> tuple[bytes, frozenset[Side]]:
    """Return what a program said without the wall's own words, and the sides of which these say that links lead on there."""
    found = _LEADS_ON.findall(said) if _LEADS_ON_BEGINS in said else []
    if not found:
        return said, frozenset()
    return _LEADS_ON.sub(b"", said), frozenset(Side.HERE if int(number) == _ROOT else Side.THERE for number in found)


def _escaped(byte: re.Match[bytes]) -> bytes:
    return b"\\#%03o" % ord(byte[0])


def _program() -> str:
    return script("process", "without-links.pl")


def _rsync_at(command: Command) -> int | None:
    """Return where rsync's own words begin in a command that starts it here over trees."""
    argv = command.argv
    if command.host is not None or "rsync" not in argv:
        return None
    at = argv.index("rsync")
    starts = at == 0 or (is_script(command) and argv[3] in _STARTERS)
    return at if starts and "--" in argv[at:] else None


class _TreeAliases:
    """The trees of one machine, and the paths of the open folders by which rsync gets them."""

    def __init__(self, root: int, first: int) -> None:
        self.names: dict[str, str] = {}
        self._root, self._next = root, first

    @property
    def shown(self) -> dict[str, str]:
        """Return what people call these paths."""
        return {**self.names, f"/proc/self/fd/{self._root}": "/"}

    @property
    def words(self) -> tuple[str, ...]:
        """Return the arguments that open them."""
        return (str(self._root), *(f"{alias.rpartition('/')[2]}={path}" for alias, path in self.names.items()))

    def alias(self, path: str) -> str:
        """Return the path of a tree's open folder."""
        known = next((alias for alias, name in self.names.items() if name == path), None)
        if known is None:
            known, self._next = f"/proc/self/fd/{self._next}", self._next + 1
            self.names[known] = path
        return known

    def below(self, path: str) -> str:
        """Return a path below the innermost tree that it is in, else as a tree of its own."""
        trees = [tree for tree in self.names.values() if path.startswith(tree.rstrip("/") + "/")]
        tree = max(trees, key=len, default=path)
        return self.alias(tree) + path[len(tree.rstrip("/")) :]


def _rename_trees(words: tuple[str, ...], here: _TreeAliases, there: _TreeAliases) -> tuple[str, ...]:
    """Return rsync's words with the open folders in place of its trees, and with the far half behind its own wall."""
    cut = words.index("--")
    options, paths = words[:cut], words[cut + 1 :]
    renamed = tuple(_rename(path, here, there, escaped=number + 1 < len(paths)) for number, path in enumerate(paths))
    receiver = here if _far_path(paths[-1]) is None else there
    options = tuple(_rename_option(word, receiver) for word in options)
    if any(_far_path(path) is not None for path in paths):
        options = _wall_off_far_half(options, there)
    return (*options, "--", *renamed)


def _far_path(path: str) -> str | None:
    """Return the path at the host that rsync's argument names; None for one here."""
    found = None if path.startswith(("/", ".")) else _FAR.fullmatch(path)
    return found["path"] if found else None


def _rename(path: str, here: _TreeAliases, there: _TreeAliases, *, escaped: bool) -> str:
    """Return one of rsync's paths. `escaped`: wildcards in it are, as in that of a far source."""
    far = _far_path(path)
    place = path if far is None else far
    if not place.startswith("/"):
        return path  # the folder that it is started in
    if place.startswith("/./"):
        folder, name = "", place[1:]  # one of several folders, each copied by its whole path
    else:
        folder, _, name = place.rpartition("/")
    tree = folder or "/"
    if far is not None and escaped:
        tree = "/".join(
            re.sub(r"\\([\\*?\[\]])", r"\1", part) if set(part) & set("*?[") else part for part in tree.split("/")
        )
    alias = (here if far is None else there).alias(tree)
    return f"{path[: len(path) - len(place)]}{alias}/{name}"


def _rename_option(word: str, receiver: _TreeAliases) -> str:
    name, sign, path = word.partition("=")
    renames = name + sign in _BESIDES and path.startswith("/")
    return name + sign + receiver.below(path) if renames else word


def _wall_off_far_half(options: tuple[str, ...], there: _TreeAliases) -> tuple[str, ...]:
    """Return the options with the wall before what starts the far half."""
    starts = next((word for word in options if word.startswith(_FAR_RSYNC)), f"{_FAR_RSYNC}rsync")
    wall = script_command(
        "process", "start-rsync.sh", *there.words, "--", effect=Effect.READS, host=None, before=wall_functions()
    )
    others = tuple(word for word in options if word != starts)
    return (*others, f"{_FAR_RSYNC}{shlex.join(pack_script(wall))} {starts.removeprefix(_FAR_RSYNC)}")


def wall_functions() -> str:
    """Return the functions by which a script starts a program behind the wall."""
    return printing_function("without_links_in_perl", _program()) + script("process", "without-links.sh")
