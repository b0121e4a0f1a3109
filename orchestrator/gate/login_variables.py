"""The variables that sshd takes from its clients: they are set before a gate begins, and reach all that starts it."""

from orchestrator.domain.answers import split_lines
from orchestrator.domain.names import printable_word
from orchestrator.domain.plan import Command, Effect

# They change words and colours alone; of any other one it is not known that no program reads a file or a library by it.
_HARMLESS = {"LANG", "LANGUAGE", "TERM", "COLORTERM", "NO_COLOR"}
_LONGEST = 40
USUAL = "AcceptEnv LANG LC_*"


def sshd_settings_command(user: str) -> Command:
    """Build the command by which sshd prints its settings for a user, as its files say them now; it takes root."""
    return Command(argv=("sshd", "-T", "-C", f"user={user},host=localhost,addr=127.0.0.1"), effect=Effect.READS)


def parse_accepted_variables(said: bytes) -> tuple[str, ...]:
    """Parse from sshd's settings the patterns of accepted variables that are not known to be harmless, and what lets a user's file set more.

    Raises: ValueError where they are no such settings.
    """
    settings = [line.partition(" ") for line in split_lines(said.decode("utf-8", "replace"))]
    taken = " ".join(value for key, _, value in settings if key.lower() == "acceptenv").split()
    files = [value for key, _, value in settings if key.lower() == "permituserenvironment"]
    if not files:
        raise ValueError("no settings of sshd")
    found = [each for each in taken if each not in _HARMLESS and not each.startswith("LC_")]
    more = [f"PermitUserEnvironment {value}" for value in files if value != "no"]
    return tuple(printable_word(each)[:_LONGEST] for each in dict.fromkeys((*found, *more)))


def accepted_warning(found: tuple[str, ...]) -> str:
    """Return what a gate's owner should know of these patterns; empty where there are none."""
    if not found:
        return ""
    return (
        f"sshd here takes more from its clients than their language: {', '.join(found)}. A variable reaches what starts a gate before the gate "
        f"can refuse anything, and some name libraries (LD_PRELOAD). Leave `{USUAL}` alone, and PermitUserEnvironment no, in /etc/ssh/sshd_config "
        "and what it includes; then `sshd -t && systemctl reload ssh`"
    )


def unseen_warning(why: str) -> str:
    """Return what a gate's owner should look at where sshd's settings could not be seen."""
    return (
        f"What sshd here takes from its clients could not be seen ({why}). As root, `sshd -T | grep -i -e acceptenv -e permituserenvironment` "
        "is to show languages alone (LANG, LC_*), and no: any other variable reaches what starts a gate before the gate can refuse anything"
    )
