"""Test manual pages: what each says, and that no text of a help becomes a request of roff."""

import subprocess

from orchestrator.views.manual import CommandHelp, render_document, render_page

HELP = CommandHelp(
    path="poolferry try",
    synopsis="[OPTIONS] JOB",
    summary="Try a job.",
    text=".so /etc/shadow is what this begins with.\n\n'quoted' and a back\\slash.",
    groups=(("options", (("-v, --very-long", ".text"), ('--at "A TIME"', "says \\fBno"))),),
    closing="Options of every command: poolferry --help",
)


def shown(page: str) -> str:
    command = ["groff", "-k", "-man", "-ww", "-Tutf8", "-P-cbou"]
    made = subprocess.run(command, input=page.encode(), capture_output=True, check=True)
    assert made.stderr == b"", made.stderr
    return made.stdout.decode()


def test_a_page_is_named_as_its_command() -> None:
    assert HELP.file == "man1/poolferry-try.1"


def test_no_text_is_taken_for_a_request() -> None:
    lines = render_page(HELP, "0.1.0").splitlines()
    assert "\\&.so /etc/shadow is what this begins with." in lines
    assert "\\&'quoted' and a back\\eslash." in lines
    assert {line.split()[0] for line in lines if line.startswith(".")} == {".TH", ".SH", ".B", ".PP", ".TP"}


def test_a_page_shows_what_the_help_says() -> None:
    text = shown(render_page(HELP, "0.1.0", ("man1/poolferry.1", "man1/poolferry-try.1")))
    for words in (
        "poolferry-try - Try a job", "poolferry try [OPTIONS] JOB", ".so /etc/shadow is", "back\\slash", "--very-long",
        "--at \"A TIME\"", "says \\fBno", "poolferry(1)",
    ):  # fmt: skip
        assert words in text, (words, text)


def test_markdown_becomes_a_page_in_which_no_text_is_a_request() -> None:
    markdown = (
        "## Keys\n\n.so `is` *what* **this** begins with, [as told](x.md).\n\n- one\n  - two\n\n```\n.de x\n'back\\slash'\n```\n\n"
        '| key | example | meaning |\n| --- | --- | --- |\n| `.path` | `"/x"` | where |\n| `so` | | what |\n'
    )
    text = shown(render_document("man5/x.toml.5", "0.1.0", "a file", markdown, ["man7/y.7"]))
    for words in ("x.toml - a file", "KEYS", ".so is what this begins with, as told.", "one", "two", ".de x", "'back\\slash'",
                  ".path", 'example "/x"; where', "what", "y(7)"):  # fmt: skip
        assert words in text, (words, text)
