"""Words that speak of another place than the repository itself."""

import re

# Written with brackets so that this page does not find itself.
FOREIGN = re.compile(
    r"(?<![\w*])/wor[k]/(main|shared|\.)|/workspac[e]|/build[s]/|/opt/whee[l]s|/hom[e]/\w+/(src|project|work)|/User[s]/|bash_job[s]|"
    r"py[p]i\.org|pythonhoste[d]|artifactor[y]|registr[y]\.|crate[s]\.io|--(extra-)?index-ur[l]|--find-link[s]"
)

MADE = {"__pycache__", "build", "dist", ".coverage"}


def foreign_words(text: str) -> list[str]:
    """Return each such word in the text."""
    return [found.group() for found in FOREIGN.finditer(text)]
