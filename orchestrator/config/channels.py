"""The [notice.NAME] tables of poolferry.toml: the channels for notices."""

from collections.abc import Collection

from orchestrator.config.decode import (
    Path,
    Table,
    TomlFile,
    declared_fields,
    decode_section,
    list_choices,
    nearest_name,
    show_value,
)
from orchestrator.domain.fast_dataclass import replace
from orchestrator.domain.names import JOB_NAME
from orchestrator.domain.notice import CHANNEL_TYPES, Channel, MailChannel

CHANNEL_TYPE_HELP = "the way that the message takes"
_TABLE = '[notice.NAME] with kind = "mail"'


def parse_channels(toml_file: TomlFile, jobs: Collection[str] | None = None) -> tuple[Channel, ...]:
    """Read the declared channels, in the order written; record each mistake. `jobs`: all job names, where known."""
    written = toml_file.table.get("notice", {})
    if not isinstance(written, dict):
        toml_file.say(("notice",), f"{show_value(written)} does not fit", _TABLE)
        return ()
    found = [_channel(toml_file, name, table) for name, table in written.items()]
    channels = tuple(channel for channel in found if channel)
    for channel in channels if jobs is not None else ():
        for job in channel.jobs:
            if job not in (jobs or ()):
                toml_file.say(
                    ("notice", channel.name, "jobs"), f'there is no job "{job}"', nearest_job(job, jobs or ())
                )
    return channels


def nearest_job(name: str, jobs: Collection[str]) -> str:
    """Return the expected value in place of an unknown job."""
    near = nearest_name(name, jobs)
    return f'"{near}", the nearest name' if near else list_choices(jobs)


def _channel(toml_file: TomlFile, name: str, written: object) -> Channel | None:
    at = ("notice", name)
    if not isinstance(written, dict):
        toml_file.say(at, f"{show_value(written)} does not fit", f'[notice.{name}] with kind = "mail"')
        return None
    if not JOB_NAME.fullmatch(name):
        toml_file.say(at, "is no name for a channel", "letters, digits, dots, - and _, the first a letter or a digit")
    model = _model(toml_file, at, written)
    if model is None:
        return None
    keys = {name: value for name, value in written.items() if name != "kind"}
    channel = decode_section(toml_file, model, keys, at, lambda key: _of_others(key, model))
    if isinstance(channel, MailChannel):
        _judge_mail(toml_file, at, channel, keys)
    return replace(channel, name=name) if channel else None


def _model(toml_file: TomlFile, at: Path, written: Table) -> type[Channel] | None:
    kind = written.get("kind")
    if isinstance(kind, str) and kind in CHANNEL_TYPES:
        return CHANNEL_TYPES[kind]
    near = nearest_name(kind, CHANNEL_TYPES) if isinstance(kind, str) else None
    what = "is missing" if "kind" not in written else f"{show_value(kind)} does not fit"
    toml_file.say((*at, "kind"), what, f'"{near}", the nearest name' if near else list_choices(CHANNEL_TYPES))
    return None


def _of_others(key: str, model: type[Channel]) -> str | None:
    """Return which channel kinds accept a key that this kind does not; None when none does."""
    kinds = [kind for kind, other in CHANNEL_TYPES.items() if other is not model and key in declared_fields(other)]
    return f"it only with kind {list_choices(kinds)}" if kinds else None


def _judge_mail(toml_file: TomlFile, at: Path, mail: MailChannel, written: Table) -> None:
    if not mail.to and written.get("to") == []:
        toml_file.say((*at, "to"), "is empty", 'who gets the mail, such as ["admin@example.org"]')
    if (mail.user is None) != (mail.password_file is None):
        told, lacking = ("user", "password-file") if mail.user else ("password-file", "user")
        toml_file.say((*at, told), f"there is no {lacking}", "both or none")
    elif mail.user and mail.security == "none":
        toml_file.say((*at, "security"), "the password would travel open", '"starttls" or "tls"')
    if mail.smtp is None:
        for key in ("security", "user", "password-file"):
            if key in written:
                toml_file.say((*at, key), "is for a mail server, and none is given", 'it beside smtp = "HOST:PORT"')
