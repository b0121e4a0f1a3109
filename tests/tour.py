"""README.md as what was printed: without what differs from one time to the next, and with what came now written into it."""

import re
from pathlib import Path

CHECKOUT = Path(__file__).parent.parent
README = CHECKOUT / "README.md"
_TIME = re.compile(
    r"\b(?:today|yesterday|(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)) \d\d:\d\d|\d{4}-\d\d-\d\dT\d{6}Z?|\d{4}-\d\d-\d\d(?: \d\d:\d\d)?"
)
_AMOUNT = re.compile(r"\d+(?:\.\d+)?(?: (?:min|[smhd]|B|[KMG]iB)(?: \d+ (?:min|[sh]))?)?(?![\w-])")


def written_into(text: str, blocks: list[re.Match[str]], written: list[str]) -> str:
    """The text with each block's first group replaced."""
    for block, came in zip(reversed(blocks), reversed(written), strict=True):
        text = text[: block.start(1)] + came + text[block.end(1) :]
    return text


def shape(text: str) -> list[str]:
    """Lines with every time and amount made alike, and columns of a table drawn together; versions differ by machine."""
    text = re.sub(r"^.*rsync here: .*$", "rsync here", text, flags=re.MULTILINE)
    return [re.sub(r" {2,}", " ", _AMOUNT.sub("0", _TIME.sub("T", line))).rstrip() for line in text.splitlines()]
