"""One hint for several refusals: all their commands, each once, and bounded."""

from orchestrator.domain.plan import Refusal, gather_hints


def refusal(part: str, hint: str, own: str = "") -> Refusal:
    return Refusal(why=f"{part} was written to", evidence=(), hint=hint, part=part, own=own)


def back(part: str) -> Refusal:
    return refusal(part, f"to lose it: zfs rollback {part}@a; then run it", f"zfs rollback {part}@a")


def test_hints_that_differ_in_a_command_alone_are_one_with_all_commands() -> None:
    assert gather_hints([back("one")]) == back("one").hint
    both = gather_hints([back("one"), back("two"), back("one")])
    assert both == "to lose it: zfs rollback one@a; zfs rollback two@a; then run it"


def test_other_hints_are_told_by_the_names_of_their_parts() -> None:
    told = gather_hints([back("one"), refusal("key", "zfs load-key key"), back("two"), refusal("", "")])
    assert told == (
        "for one, two: to lose it: zfs rollback one@a; zfs rollback two@a; then run it; for key: zfs load-key key"
    )


def test_many_are_bounded() -> None:
    told = gather_hints(back(f"d{number}") for number in range(25))
    assert told.count("zfs rollback") == 20
    assert "; and so on for 5 more; then run it" in told
    told = gather_hints(refusal(f"d{number}", f"see {number}") for number in range(9))
    assert (told.count("see "), told.endswith("; and so on for 4 more")) == (5, True)
