"""The [notice.NAME] tables of poolferry.toml: the channels for notices."""

from collections.abc import Collection

from orchestrator.config.decode import Path, Sheet, Table, declared, fill, nearest, one_of, shown
from orchestrator.domain.fast_dataclass import replace
from orchestrator.domain.names import JOB_NAME
from orchestrator.domain.notice import KINDS, Channel, Mail

KIND = "the way that the message takes"
_TABLE = '[notice.NAME] with kind = "mail"'


def read_channels(sheet: Sheet, jobs: Collection[str] | None = None) -> tuple[Channel, ...]:
    """Read the declared channels, in the order written; record each mistake. `jobs`: all job names, where known."""
    written = sheet.table.get("notice", {})
    if not isinstance(written, dict):
        sheet.say(("notice",), f"{shown(written)} does not fit", _TABLE)
        return ()
    found = [_channel(sheet, name, table) for name, table in written.items()]
    channels = tuple(channel for channel in found if channel)
    for channel in channels if jobs is not None else ():
        for job in channel.jobs:
            if job not in (jobs or ()):
                sheet.say(("notice", channel.name, "jobs"), f'there is no job "{job}"', nearest_job(job, jobs or ()))
    return channels


def nearest_job(name: str, jobs: Collection[str]) -> str:
    """Return what is expected in place of an unknown job."""
    near = nearest(name, jobs)
    return f'"{near}", the nearest name' if near else one_of(jobs)


def _channel(sheet: Sheet, name: str, written: object) -> Channel | None:
    at = ("notice", name)
    if not isinstance(written, dict):
        sheet.say(at, f"{shown(written)} does not fit", f'[notice.{name}] with kind = "mail"')
        return None
    if not JOB_NAME.fullmatch(name):
        sheet.say(at, "is no name for a channel", "letters, digits, dots, - and _, the first a letter or a digit")
    model = _model(sheet, at, written)
    if model is None:
        return None
    keys = {name: value for name, value in written.items() if name != "kind"}
    channel = fill(sheet, model, keys, at, lambda key: _of_others(key, model))
    if isinstance(channel, Mail):
        _judge_mail(sheet, at, channel, keys)
    return replace(channel, name=name) if channel else None


def _model(sheet: Sheet, at: Path, written: Table) -> type[Channel] | None:
    kind = written.get("kind")
    if isinstance(kind, str) and kind in KINDS:
        return KINDS[kind]
    near = nearest(kind, KINDS) if isinstance(kind, str) else None
    what = "is missing" if "kind" not in written else f"{shown(kind)} does not fit"
    sheet.say((*at, "kind"), what, f'"{near}", the nearest name' if near else one_of(KINDS))
    return None


def _of_others(key: str, model: type[Channel]) -> str | None:
    """Return which channel kinds accept a key that this kind does not; None when none does."""
    kinds = [kind for kind, other in KINDS.items() if other is not model and key in declared(other)]
    return f"it only with kind {one_of(kinds)}" if kinds else None


def _judge_mail(sheet: Sheet, at: Path, mail: Mail, written: Table) -> None:
    if not mail.to and written.get("to") == []:
        sheet.say((*at, "to"), "is empty", 'who gets the mail, such as ["admin@example.org"]')
    if (mail.user is None) != (mail.password_file is None):
        told, lacking = ("user", "password-file") if mail.user else ("password-file", "user")
        sheet.say((*at, told), f"there is no {lacking}", "both or none")
    elif mail.user and mail.security == "none":
        sheet.say((*at, "security"), "the password would travel open", '"starttls" or "tls"')
    if mail.smtp is None:
        for key in ("security", "user", "password-file"):
            if key in written:
                sheet.say((*at, key), "is for a mail server, and none is told", 'it beside smtp = "HOST:PORT"')
