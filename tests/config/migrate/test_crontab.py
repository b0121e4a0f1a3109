"""Lines of crontabs as cron and its shell read them."""

import pytest

from orchestrator.config.migrate.crontab import CrontabCall, parse_calls, parse_when


def calls(text: str) -> list[CrontabCall | tuple[int, str]]:
    return list(parse_calls(text, "syncoid"))


def one(text: str) -> CrontabCall:
    (found,) = calls(text)
    assert isinstance(found, CrontabCall)
    return found


def test_a_persons_line_and_one_of_cron_d() -> None:
    own = one("# m h\n30 2 * * * /usr/sbin/syncoid -r a/b c/d\n")
    assert own == CrontabCall(line=2, when="30 2 * * *", schedule="30 2 * * *", before=(), words=("-r", "a/b", "c/d"))
    assert one("30 2 * * * root syncoid a/b c/d").before == ("root",)
    assert one("@daily root nice -n 19 syncoid a/b c/d").before == ("root", "nice", "-n", "19")


@pytest.mark.parametrize(
    ("when", "fields"),
    [
        ("@hourly", "0 * * * *"),
        ("@midnight", "0 0 * * *"),
        ("*/15 * * * mon-fri", "*/15 * * * mon-fri"),
        ("@reboot", None),
        ("61 * * * *", None),
    ],
)
def test_when(when: str, fields: str | None) -> None:
    assert parse_when(when) == fields
    assert one(f"{when} syncoid a b").schedule == fields


@pytest.mark.parametrize(
    "line",
    [
        "# 1 2 3 4 5 syncoid a b",
        "SYNC=/usr/sbin/syncoid a b",
        "1 2 3 4 5 echo /usr/share/syncoid.txt",
        "",
        "0 0 * * * my-syncoid a b",
    ],
)
def test_what_is_no_call(line: str) -> None:
    assert calls(line) == []


def test_several_calls_in_one_line() -> None:
    text = "0 1 * * * syncoid a b >/dev/null 2>&1 && syncoid c d; syncoid e f | logger -t syncoid"
    found = [call for call in calls(text) if isinstance(call, CrontabCall)]
    assert [(call.words, call.waits) for call in found[:3]] == [
        (("a", "b"), False),
        (("c", "d"), True),
        (("e", "f"), False),
    ]


def test_quotes_percent_signs_and_redirections() -> None:
    assert one(r"""0 1 * * * syncoid --exclude='x$' "a/my own" b 2>> /log""").words == ("--exclude=x$", "a/my own", "b")
    assert one(r"0 1 * * * syncoid 'a\%b' c\%d %its input").words == ("a%b", "c%d")
    assert one(r"""0 1 * * * syncoid --exclude=x$ 'a$b' c\$d""").words == ("--exclude=x$", "a$b", "c$d")


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("0 1 * * * syncoid a/$DS b", "only its shell knows what a/$DS is"),
        ('0 1 * * * syncoid "a/`hostname`" b', "only its shell knows what a/`hostname` is"),
        ("0 1 * * * syncoid 'a b", "cannot be read as a shell would (No closing quotation)"),
        ("syncoid a b", "is no line of a crontab"),
    ],
)
def test_what_cannot_be_read(line: str, why: str) -> None:
    assert calls(line) == [(1, why)]
