"""The pages for contributors: each file that they name is there, and the words are as many as promised."""

import re
import shlex
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
ROOMS = ("orchestrator", "jobs", "hooks", "systemd", "tests")
PAGE = (ROOT / "orchestrator" / "README.md").read_text()


def section(title: str) -> str:
    """The text below a heading."""
    return PAGE.split(f"## {title}\n", 1)[1].split("\n## ", 1)[0]


def test_each_named_file_is_there() -> None:
    named = set(re.findall(r"`((?:[\w.]+/)+[\w.]*)`", PAGE))
    assert len(named) > 20
    missing = {name for name in named if not ((ROOT / "orchestrator" / name).exists() or (ROOT / name).exists())}
    assert missing == set()


def test_a_run_takes_ten_hops_and_there_are_forty_words() -> None:
    assert re.findall(r"^(\d+)\. `", section("One run in ten hops"), re.MULTILINE) == [str(hop) for hop in range(1, 11)]
    assert section("Words").count("\n| ") - 2 >= 40


def test_links_lead_to_files() -> None:
    for page in ("CONTRIBUTING.md", "orchestrator/README.md"):
        text = (ROOT / page).read_text()
        for link in re.findall(r"\]\(([^)#]+)\)", text):
            assert ((ROOT / page).parent / link).exists(), (page, link)


def test_make_has_each_target_that_a_page_names_and_hands_on_what_it_is_given() -> None:
    pages = [*ROOT.glob("*.md"), *(page for room in ROOMS for page in (ROOT / room).rglob("*.md"))]
    written = "".join(page.read_text() for page in pages)
    named = set(re.findall(r'`make ([\w-]+)((?: \w+="?[^"`]*"?)?)', written))
    assert {"bench", "bench-zfs", "bench-fleet", "check", "test"} <= {target for target, _ in named}
    for target, given in sorted(named):
        words = shlex.split(given)
        # What it would start: a part of the set-up may be done already.
        told = subprocess.run(["make", "-n", "-B", target, *words], cwd=ROOT, capture_output=True, text=True)
        assert told.returncode == 0, (target, told.stderr)
        for word in words:
            name, _, value = word.partition("=")
            assert name != "ARGS" or value in told.stdout, (target, given)
