"""The last words of a stage: bounded, and safe to print and to store. Pure."""

import re

LAST = 8 << 10
# Everything a terminal would obey rather than show, but tab and line ends; and bytes that are no UTF-8.
_UNSAFE = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\udc80-\udcff]")


class Tail:
    """The last 8 KiB of what a stage said; `seen` counts all of it."""

    def __init__(self) -> None:
        self.seen = 0
        self._kept = bytearray()

    def add(self, said: bytes) -> None:
        """Takes in more, and forgets what is too old."""
        self.seen += len(said)
        self._kept += said
        del self._kept[:-LAST]

    @property
    def text(self) -> str:
        """The words, whole lines where there are any; "…" in front when earlier ones were dropped."""
        kept = bytes(self._kept)
        if self.seen <= LAST:
            return readable(kept)
        _, end, rest = kept.partition(b"\n")
        return "…\n" + readable(rest if end and rest else kept)


def readable(said: bytes) -> str:
    r"""Text of any bytes, printable anywhere: carriage returns end lines, what is no UTF-8 shows as \xff."""
    text = said.decode("utf-8", "surrogateescape").replace("\r\n", "\n").replace("\r", "\n")
    return _UNSAFE.sub(_escaped, text).strip("\n")


def _escaped(match: re.Match[str]) -> str:
    return "".join(f"\\x{byte:02x}" for byte in match[0].encode("utf-8", "surrogateescape"))
