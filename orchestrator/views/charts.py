"""Charts as SVG: no script draws them, and no inline style, which the pages' policy forbids.

Each has a title for readers, and says nothing by colour alone: a mark or a pattern says the same.
"""

from collections.abc import Sequence
from datetime import date, timedelta
from html import escape

from orchestrator.domain.fast_dataclass import dataclass
from orchestrator.domain.names import printable_line
from orchestrator.views.point_calendar import PointCalendar, PointCheck

_CELL, _GAP, _LEFT, _TOP = 13, 3, 34, 20
_WEEKDAYS = ((0, "Mon"), (2, "Wed"), (4, "Fri"))


def _text(text: str) -> str:
    return escape(printable_line(text), quote=True)


def share_bar(share: float, says: str, kind: str) -> str:
    """Draw how much of a whole is used: a limit, a transfer, a pool. More than all of it shows where the limit was.

    `kind`: a class of the style sheet; `says`: the same as text, for readers. In whole percents: what ages does not change at each look.
    """
    full = max(share, 0.0)
    limit = (
        f'<line class="bar-limit" x1="{100 / full:.0f}%" x2="{100 / full:.0f}%" y1="0" y2="100%"/>' if full > 1 else ""
    )
    width = max(min(full, 1.0) * 100, 2 if full else 0)
    return (
        f'<svg class="bar bar-{kind}" role="img" aria-label="{_text(says)}">'
        f'<rect class="bar-back" width="100%" height="100%" rx="5"/>'
        f'<rect class="bar-fill" width="{width:.0f}%" height="100%" rx="5"/>{limit}</svg>'
    )


def heat_map(calendar: PointCalendar) -> str:
    """Draw a calendar of weeks: a cell for each day, its shape and colour the state of the day's points."""
    weeks = (calendar.last - calendar.first).days // 7 + 1
    step = _CELL + _GAP
    width, height = _LEFT + weeks * step, _TOP + 7 * step
    says = (
        f"restore points at {calendar.place} by day, {calendar.first} to {calendar.last}; the table below has the same"
    )
    parts = [
        f'<svg class="heat heat-map" role="img" width="{width}" height="{height}" viewBox="0 0 {width} {height}" aria-label="{_text(says)}">'
    ]
    parts += [f'<text class="heat-day" x="0" y="{_TOP + row * step + 11}">{name}</text>' for row, name in _WEEKDAYS]
    parts += _months(calendar, weeks, step)
    known = {each.day: each for each in calendar.days}
    for number in range((calendar.last - calendar.first).days + 1):
        day = calendar.first + timedelta(days=number)
        found = known.get(day)
        x, y = _LEFT + number // 7 * step, _TOP + number % 7 * step
        check = found.check if found else None
        words = found.words if found else f"{day:%a %Y-%m-%d}: no point"
        parts.append(_cell(x, y, check, words))
    return "".join([*parts, "</svg>"])


def _months(calendar: PointCalendar, weeks: int, step: int) -> list[str]:
    found, last = [], -3
    for week in range(weeks):
        monday = calendar.first + timedelta(weeks=week)
        first = next((day for day in (monday + timedelta(days=n) for n in range(7)) if day.day == 1), None)
        if first is not None and week - last >= 3 and week <= weeks - 2:
            label = f"{first:%b}" if first.month > 1 else f"{first:%Y}"
            found.append(f'<text class="heat-month" x="{_LEFT + week * step}" y="12">{label}</text>')
            last = week
    return found


def _cell(x: int, y: int, check: PointCheck | None, words: str) -> str:
    kind = check.value if check else "none"
    marks = {
        PointCheck.READ: f'<circle class="mark" cx="{x + 6.5}" cy="{y + 6.5}" r="2.4"/>',
        PointCheck.DAMAGED: f'<path class="mark" d="M{x + 3.5} {y + 3.5}l6 6m0-6l-6 6"/>',
    }
    mark = marks.get(check, "") if check else ""
    rect = (
        f'<rect class="cell cell-{kind}" x="{x + 0.5}" y="{y + 0.5}" width="{_CELL - 1}" height="{_CELL - 1}" rx="3"/>'
    )
    return f"<g>{rect}{mark}<title>{_text(words)}</title></g>" if check else rect


def legend_cell(check: PointCheck) -> str:
    """Draw one cell for a legend."""
    return (
        f'<svg class="heat" width="{_CELL}" height="{_CELL}" aria-hidden="true">{_cell(0, 0, check, check.value)}</svg>'
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ChartColumn:
    """One column: its height, its state (a class of the style sheet), and its words."""

    value: float
    kind: str
    says: str


def column_chart(columns: Sequence[ChartColumn], says: str) -> str:
    """Draw columns side by side, the highest as high as the chart. One that failed has a mark above it."""
    most = max((each.value for each in columns), default=0) or 1
    width = 100 / max(len(columns), 24)
    parts = [f'<svg class="columns" role="img" aria-label="{_text(says)}">']
    for number, each in enumerate(columns):
        high = max(each.value / most * 92, 1.5)
        x = f"{number * width:.2f}%"
        title = f"<title>{_text(each.says)}</title>"
        parts.append(
            f'<rect class="column column-{each.kind}" x="{x}" y="{100 - high:.1f}%" width="{width * 0.72:.2f}%" height="{high:.1f}%" rx="2">'
            f"{title}</rect>"
        )
        if each.kind == "bad":
            parts.append(
                f'<circle class="column-mark" cx="{(number + 0.36) * width:.2f}%" cy="{96 - high:.1f}%" r="3"/>'
            )
    return "".join([*parts, "</svg>"])


def line_chart(values: Sequence[tuple[date, float]], says: str) -> str:
    """Draw shares from 0 to 1 over days as one line, with the area below it."""
    if len(values) < 2:
        return ""
    first, last = values[0][0], values[-1][0]
    days = max((last - first).days, 1)
    points = [((day - first).days / days * 1000, 200 - share * 200) for day, share in values]
    path = " ".join(f"{'M' if not n else 'L'}{x:.0f} {y:.1f}" for n, (x, y) in enumerate(points))
    grid = "".join(f'<line class="grid" x1="0" x2="1000" y1="{y}" y2="{y}"/>' for y in (50, 100, 150))
    return (
        f'<svg class="line" viewBox="0 0 1000 200" preserveAspectRatio="none" role="img" aria-label="{_text(says)}">{grid}'
        f'<path class="area" d="{path} L1000 200 L0 200 Z"/><path class="stroke" d="{path}"/></svg>'
    )
