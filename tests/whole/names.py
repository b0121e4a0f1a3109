"""Names that break programs."""

import os

from tests.whole.house import House

NAMES = (
    b"with space", b" leading", b"trailing ", b"-rf", b"--delete", b"-", b"new\nline", b"\n", b"cr\r", b"tab\t", b"'single'",
    b'"double"', b"#hash", b"; semi", b";", b"$(touch PWNED)", b"`id`", b"*", b"?", b"[1]", b"1", b"a:b", b"back\\slash", b"\\",
    b"\\#012", b"\\#", b"\\n", b"\xff\xfe", b"latin-\xe9", b"c1-\xc2\x9b", b"\x1b[31m", b"\x01", b"a -> b", b" -> ", b"x" * 255, b"\xcc\x81" * 127,
    b"pf:x|1|2|3|y", b"|", b"...", b".x.AbC123", b"*deleting", b"%s", b"~", b"!", b"e\xcc\x81", b"\xc3\xa9", b"100%",
)  # fmt: skip


def hostile_tree(house: House) -> None:
    for number, name in enumerate(NAMES):
        house.write(b"files/" + name, b"content %d" % number)
        house.write(b"folders/" + name + b"/" + name, b"inside %d" % number)
        os.symlink(name, os.fsencode(house.source) + b"/link%d" % number)
    os.makedirs(house.source / "empty/in/empty")
