"""Charts say in words what they draw, and draw nothing that a name holds."""

from datetime import date, timedelta
from xml.etree import ElementTree as ET

from orchestrator.views.charts import ChartColumn, column_chart, heat_map, line_chart, share_bar
from orchestrator.views.point_calendar import PointCalendar, PointCheck, PointDay, calendar_span
from orchestrator.views.source_rows import hint_command
from orchestrator.views.watched_pools import day_when_full

ODD = "<script>\u202e\"'&\n"
TODAY = date(2026, 11, 25)


def drawn(svg: str) -> ET.Element:
    """The chart as a tree, which must be whole, and without what a style sheet of ours forbids."""
    assert "style=" not in svg
    assert "\u202e" not in svg
    return ET.fromstring(svg)  # noqa: S314 - our own


def test_a_bar_is_as_long_as_its_share_and_marks_a_limit_that_is_passed() -> None:
    for share, width in ((0.0, "0%"), (0.5, "50%"), (0.504, "50%"), (1.0, "100%"), (4.0, "100%")):
        bar = drawn(share_bar(share, f"half {ODD}", "good"))
        assert bar.findall("rect")[1].get("width") == width
        assert [line.get("x1") for line in bar.findall("line")] == (["25%"] if share > 1 else [])
        assert bar.get("aria-label") == "half <script>\\u202e\"'&\\n"


def test_a_calendar_has_a_cell_for_each_day_and_a_mark_where_colour_alone_would_say_it() -> None:
    first, last = calendar_span(TODAY, None)
    assert (first.weekday(), last) == (0, TODAY)
    days = tuple(PointDay(day=TODAY - timedelta(days=n), check=check, points=()) for n, check in enumerate(PointCheck))
    found = drawn(heat_map(PointCalendar(place=ODD, first=first, last=last, days=days, total=4)))
    cells = [each.get("class") for each in found.iter("rect")]
    assert len(cells) == (last - first).days + 1
    assert {cell for cell in cells if cell != "cell cell-none"} == {f"cell cell-{check}" for check in PointCheck}
    assert len([each for each in found.iter() if each.get("class") == "mark"]) == 2
    assert calendar_span(TODAY, 2024)[1] == date(2024, 12, 31)
    assert calendar_span(TODAY, 2024)[0] <= date(2024, 1, 1)


def test_columns_are_as_high_as_their_values_and_failures_have_a_mark() -> None:
    columns = [ChartColumn(value=n, kind="bad" if n == 3 else "good", says=ODD) for n in range(5)]
    found = drawn(column_chart(columns, ODD))
    heights = [float(str(each.get("height")).rstrip("%")) for each in found.iter("rect")]
    assert heights == sorted(heights)
    assert heights[-1] == 92
    assert len(found.findall("circle")) == 1
    assert drawn(column_chart([], "none")).findall("rect") == []


def test_a_line_goes_through_all_days() -> None:
    assert line_chart([(TODAY, 0.5)], "one day is no line") == ""
    found = drawn(line_chart([(TODAY + timedelta(days=n), n / 10) for n in range(11)], ODD))
    assert str(found.findall("path")[1].get("d")).split(" L")[-1] == "1000 0.0"


def test_the_day_on_which_a_pool_is_full() -> None:
    rising = [(TODAY + timedelta(days=n), 0.5 + n * 0.01) for n in range(31)]
    assert day_when_full(rising) == TODAY + timedelta(days=50)
    assert day_when_full([(day, 0.5) for day, _ in rising]) is None
    assert day_when_full([(day, 1 - share) for day, share in rising]) is None
    assert day_when_full(rising[:10]) is None, "too few days for a trend"
    assert day_when_full([(TODAY + timedelta(days=n), 0.1 + n * 1e-5) for n in range(90)]) is None, "not in our time"


def test_the_command_in_a_hint() -> None:
    hints = {
        "poolferry run photos copies damaged files again": "poolferry run photos",
        "wait; `poolferry status` shows it; poolferry run photos": "poolferry status",
        "poolferry verify photos --point 2026-11-24T023000Z reads it again": "poolferry verify photos --point 2026-11-24T023000Z",
        "if that was meant: poolferry points accept photos": "poolferry points accept photos",
        "poolferry run photos-old makes a copy": "",
        "plug it in": "",
    }
    assert {hint: hint_command(hint, "photos") for hint in hints} == hints
