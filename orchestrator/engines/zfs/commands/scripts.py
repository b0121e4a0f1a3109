"""The lines before every script of the zfs engine; the scripts themselves lie in `engines/zfs/scripts/`.

One call is one login over ssh. Names are passed as arguments: nothing is ever spliced into a text.
"""

# A login without a terminal, and an ordinary user, often have no sbin in their PATH.
PATH = "PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin"
SUDO = 'zfs() { sudo -n zfs "$@"; }'


def one_line(text: str) -> str:
    """Return the script as one line, so that a plan and a log can show it and a person can paste it."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return "".join(line + (" " if _goes_on(line) else "; ") for line in lines).removesuffix("; ")


def _goes_on(line: str) -> bool:
    """Return whether the text after a line belongs to the same command."""
    return line.endswith(("{", "|", ";")) or line.rsplit(maxsplit=1)[-1] in ("then", "do", "else", "in")
