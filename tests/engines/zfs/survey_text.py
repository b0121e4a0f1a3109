"""Texts as the survey's script and `zfs get` print them."""

HEAD = "=here 0 no mbuffer 2.3.9-0+deb13u1\n=pool 10706450245829482859 ONLINE\n"


def rows(name: str, text: str = "", **values: str) -> str:
    """The lines of `zfs get` for one dataset; a value may tell its source after a bar."""
    told = {"type": "filesystem", "guid": "5", "createtxg": "12", "origin": "-", "encryption": "off"} | values
    told |= dict(pair.split("=") for pair in text.split())
    lines = []
    for key, value in told.items():
        shown, _, source = value.partition("|")
        lines.append(f"{name}\t{key.replace('__', ':')}\t{shown}\t{source or '-'}")
    return "\n".join(lines) + "\n"
