"""Findings about the needs of poolferry.toml's channels: secrets in files, sendmail, Apprise."""

import os
import re
import shutil
import stat
from collections.abc import Iterator, Mapping, Sequence
from importlib.util import find_spec

from orchestrator.domain.command_line import quoted
from orchestrator.domain.notice import AppriseChannel, Channel, DeliveryFailed, MailChannel
from orchestrator.engines.contract.engine import SystemCheckResult
from orchestrator.notices.transport import SenderContext, read_secret

_KEYS = ("password_file", "token_file", "url", "topic")
_LOADED = re.compile(r"(?m)^LoadCredential(?:Encrypted)?=([^:\s]+):(\S+)")


def check_channels(
    channels: Sequence[Channel], means: SenderContext, units: Sequence[str] = ()
) -> tuple[SystemCheckResult, ...]:
    """Return one finding for each need of a channel. `units`: texts of the daemon's unit, which may bring credentials."""
    brought = {name: path for text in units for name, path in _LOADED.findall(text)}
    return tuple(found for channel in channels for found in _of(channel, means, brought))


def _of(channel: Channel, means: SenderContext, brought: Mapping[str, str]) -> Iterator[SystemCheckResult]:
    subject = f"notice {channel.name}"
    for key in _KEYS:
        told = getattr(channel, key, None)
        if told and (key.endswith("_file") or told.startswith("@")):
            yield _secret(subject, told.removeprefix("@"), means, brought)
    if isinstance(channel, MailChannel) and channel.smtp is None and shutil.which("sendmail", path=_path()) is None:
        hint = "install a mail system, or set smtp = HOST:PORT"
        yield SystemCheckResult(good=False, subject=subject, text=f"this machine has no sendmail: {hint}")
    if isinstance(channel, AppriseChannel) and find_spec("apprise") is None:
        yield SystemCheckResult(
            good=False,
            subject=subject,
            text="Apprise is not installed: install poolferry with its extra, poolferry[notices]",
        )


def _path() -> str:
    """Return the search path of programs. Source: Debian's policy keeps sendmail in /usr/sbin, which a user's PATH lacks."""
    return f"{os.environ.get('PATH', os.defpath)}:/usr/sbin:/usr/lib"


def _secret(subject: str, name: str, means: SenderContext, brought: Mapping[str, str]) -> SystemCheckResult:
    path = _lies_at(name, means) or brought.get(name)
    if path is None:
        places = " and ".join(means.secrets)
        what = f"its secret {name} is missing" + ("" if "/" in name else f" in {places}")
        return SystemCheckResult(
            good=False, subject=subject, text=f"{what}: write it there, on one line, for its owner alone"
        )
    try:
        read_secret(path, means)
        mode = stat.S_IMODE(os.stat(path).st_mode)
    except (DeliveryFailed, OSError) as error:
        return SystemCheckResult(good=False, subject=subject, text=str(error))
    if mode & (stat.S_IROTH | stat.S_IWOTH):
        text = f"everybody on this machine may read its secret: chmod 600 {quoted(path)}"
        return SystemCheckResult(good=False, subject=subject, text=text, hinders=False)
    return SystemCheckResult(good=True, subject=subject, text=f"its secret lies at {path}, mode {mode:04o}")


def _lies_at(name: str, means: SenderContext) -> str | None:
    places = [name] if "/" in name else [os.path.join(folder, name) for folder in means.secrets]
    return next((place for place in places if os.path.lexists(place)), None)
