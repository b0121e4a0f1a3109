"""Findings about the needs of poolferry.toml's channels: secrets in files, sendmail, Apprise."""

import os
import re
import shutil
import stat
from collections.abc import Iterator, Mapping, Sequence
from importlib.util import find_spec

from orchestrator.domain.notice import Apprise, Channel, Mail, Undelivered
from orchestrator.engines.contract import Advice
from orchestrator.notices.transport import Means, secret

_KEYS = ("password_file", "token_file", "url", "topic")
_LOADED = re.compile(r"(?m)^LoadCredential(?:Encrypted)?=([^:\s]+):(\S+)")


def channel_advice(channels: Sequence[Channel], means: Means, units: Sequence[str] = ()) -> tuple[Advice, ...]:
    """Return one finding for each need of a channel. `units`: texts of the daemon's unit, which may bring credentials."""
    brought = {name: path for text in units for name, path in _LOADED.findall(text)}
    return tuple(found for channel in channels for found in _of(channel, means, brought))


def _of(channel: Channel, means: Means, brought: Mapping[str, str]) -> Iterator[Advice]:
    subject = f"notice {channel.name}"
    for key in _KEYS:
        told = getattr(channel, key, None)
        if told and (key.endswith("_file") or told.startswith("@")):
            yield _secret(subject, told.removeprefix("@"), means, brought)
    if isinstance(channel, Mail) and channel.smtp is None and shutil.which("sendmail", path=_path()) is None:
        cure = "install a mail system, or tell smtp = HOST:PORT"
        yield Advice(good=False, subject=subject, text=f"this machine has no sendmail: {cure}")
    if isinstance(channel, Apprise) and find_spec("apprise") is None:
        yield Advice(
            good=False,
            subject=subject,
            text="Apprise is not installed: install poolferry with its extra, poolferry[notices]",
        )


def _path() -> str:
    """Return the search path of programs. Source: Debian's policy keeps sendmail in /usr/sbin, which a user's PATH lacks."""
    return f"{os.environ.get('PATH', os.defpath)}:/usr/sbin:/usr/lib"


def _secret(subject: str, name: str, means: Means, brought: Mapping[str, str]) -> Advice:
    path = _lies_at(name, means) or brought.get(name)
    if path is None:
        places = " and ".join(means.secrets)
        what = f"its secret {name} is missing" + ("" if "/" in name else f" in {places}")
        return Advice(good=False, subject=subject, text=f"{what}: write it there, on one line, for its owner alone")
    try:
        secret(path, means)
        mode = stat.S_IMODE(os.stat(path).st_mode)
    except (Undelivered, OSError) as error:
        return Advice(good=False, subject=subject, text=str(error))
    if mode & (stat.S_IROTH | stat.S_IWOTH):
        text = f"everybody on this machine may read its secret: chmod 600 {path}"
        return Advice(good=False, subject=subject, text=text, hinders=False)
    return Advice(good=True, subject=subject, text=f"its secret lies at {path}, mode {mode:04o}")


def _lies_at(name: str, means: Means) -> str | None:
    places = [name] if "/" in name else [os.path.join(folder, name) for folder in means.secrets]
    return next((place for place in places if os.path.lexists(place)), None)
