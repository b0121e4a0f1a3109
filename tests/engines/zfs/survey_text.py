"""Texts as the survey's script and `zfs get` print them."""

HEAD = "=here 0 no mbuffer 2.3.9-0+deb13u1\n=pool 10706450245829482859 ONLINE\n"
# As zfs prints them of each dataset, one that has none too. Nothing is asked on both sides, which makes no difference here.
ASKED = (
    "prevsnap type guid createtxg origin encryption encryptionroot keystatus used checksum copies dedup sync zoned receive_resume_token "
    "inconsistent written mounted readonly canmount available poolferry__flags poolferry__placeholder poolferry__waits"
).split()


def rows(name: str, text: str = "", **values: str) -> str:
    """The lines of `zfs get` for one dataset; a value may tell its source after a bar."""
    told = dict.fromkeys(ASKED, "-") | {"type": "filesystem", "guid": "5", "createtxg": "12", "encryption": "off"}
    told |= values | dict(pair.split("=") for pair in text.split())
    lines = []
    for key, value in told.items():
        shown, _, source = value.partition("|")
        lines.append(f"{name}\t{key.replace('__', ':')}\t{shown}\t{source or '-'}")
    return "\n".join(lines) + "\n"
