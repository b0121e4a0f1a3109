"""Words of the field in the names of classes and files."""

import re

# Our own old words, which name no class and no file any more; the field's are in the contributors' glossary.
OLD_WORDS = set(
    "deed deeds cure prove proves proved proof proofs rehearsal owed slot slots keeper cover sealed lane lanes room rooms promise "
    "promised asked wish wished wanted seen found known held kept standing unit kind desk frame door doors ears bell hands shelf "
    "sheet stay stays dock told telling sayings words".split()
)
OF_THE_FIELD = {"SystemdUnit"}  # systemd's own word


def words_of(name: str) -> set[str]:
    """The words of a class's or a file's name, in lower case."""
    return {word.lower() for word in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+", name)}
