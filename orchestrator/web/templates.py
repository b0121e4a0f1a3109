"""The templates and their words: each text comes out as text, whatever a name holds."""

import hashlib
import os
import re
from datetime import datetime
from typing import Any

import jinja2
from markupsafe import Markup, escape

from orchestrator import __version__, compose
from orchestrator.domain.names import make_printable
from orchestrator.domain.units import show_count, show_duration, show_size
from orchestrator.views import charts
from orchestrator.views.format import format_ago, format_brief, format_clock, format_iso
from orchestrator.views.point_calendar import CHECK_WORDS, check_point
from orchestrator.views.source_rows import hint_command
from orchestrator.web.live import CUT

_FIGURE = re.compile(r"(\d) (d|h|min|s|B|[KMGT]iB|points?)\b")
_HERE = os.path.dirname(os.path.abspath(__file__))


def _as_text(value: Any) -> Any:
    """Return text without what a browser obeys or cannot encode: turned direction, invisible characters, bytes that are no text."""
    return make_printable(value) if isinstance(value, str) and not isinstance(value, Markup) else value


class Templates:
    """The templates. `frame`: values that each page has."""

    def __init__(self, **frame: object) -> None:
        self._environment = jinja2.Environment(
            loader=jinja2.FileSystemLoader(os.path.join(_HERE, "templates")), autoescape=True, finalize=_as_text,
            undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True,
        )  # fmt: skip
        self._environment.filters |= {
            "size": show_size, "duration": show_duration, "count": show_count, "iso": format_iso,
            "ago": lambda instant, now: format_ago(instant, now=now), "clock": lambda instant, now: format_clock(instant, now=now),
            "figures": _figures, "brief": lambda instant, now: format_brief(instant, now=now), "exact": _exact, "ticks": _ticks,
        }  # fmt: skip
        self._environment.globals |= {
            "share_bar": _svg(charts.share_bar), "heat_map": _svg(charts.heat_map), "legend_cell": _svg(charts.legend_cell),
            "column_chart": _svg(charts.column_chart), "line_chart": _svg(charts.line_chart), "check_words": CHECK_WORDS,
            "check": check_point, "hint_command": hint_command, "version": __version__, "asset": asset_address, "len": len,
            "cut": Markup(CUT), **frame,  # noqa: S704
        }  # fmt: skip

    def render(self, name: str, **values: object) -> str:
        """Return a page or a part of one; `now` is the present moment."""
        return self._environment.get_template(name).render(now=compose.now(), **values)


def _exact(instant: datetime | None) -> str:
    return "" if instant is None else f"{instant.astimezone():%Y-%m-%d %H:%M:%S}"


def _figures(text: str) -> str:
    """Return a sentence of ours whose figures stay on one line with their units."""
    return _FIGURE.sub("\\1\u00a0\\2", text)


def _ticks(text: str, command: str = "") -> Markup:
    """Return a sentence of ours in which commands stand in backquotes, with these set as commands. `command`: another one in it."""
    if command and f"`{command}`" not in text:
        text = text.replace(command, f"`{command}`", 1)
    parts = [escape(make_printable(part)) for part in text.split("`")]
    if len(parts) % 2 == 0:  # a backquote that is no pair's
        return escape(make_printable(text))
    return Markup("").join(Markup("<code>%s</code>") % part if at % 2 else part for at, part in enumerate(parts))


def _svg(draw: Any) -> Any:
    """Return the function with its result taken for markup: charts escape what they are handed."""

    def drawn(*arguments: Any) -> Markup:
        return Markup(draw(*arguments))  # noqa: S704

    return drawn


ASSETS = {"app.css": "text/css; charset=utf-8", "app.js": "text/javascript; charset=utf-8", "icon.svg": "image/svg+xml"}


def read_asset(name: str) -> bytes:
    """Return a file of ours that pages need. Raises: KeyError for another name."""
    _ = ASSETS[name]
    with open(os.path.join(_HERE, "static", name), "rb") as file:
        return file.read()


def asset_address(name: str) -> str:
    """Return the address of a file, which changes with its contents: so that a browser may keep it."""
    return f"/static/{name}?{hashlib.blake2b(read_asset(name), digest_size=6).hexdigest()}"
