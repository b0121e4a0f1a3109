"""Types of the columns that statements return: a row is checked before anybody uses it.

Why: a history may be damaged, and one from a kit holds what a stranger wrote. A name of a column means one type in all tables.
"""

from datetime import UTC, datetime, timedelta

from orchestrator.domain.answers import bound_instant

WHOLE_NUMBERS = frozenset(
    "id run number pid process_started moved_bytes resumed attempts attempt expected moved proved exit entries bytes "
    "confirmed_by sound entries_read files_read bytes_read reading_sound left_out reading slots after_run tries tried orderly "
    "reminders unsteady size generation written safe whole proves seed files of_files of_bytes check_exit last undated found "
    "data_version runs unsound well seq back first sending_last stored_last reads dated sized fresh fresh_bytes".split()
)
NUMBERS = frozenset({"took_s", "restore_s"})
# Columns that are empty in some rows of some table; those of `needed` below are not in the tables named there.
NULLABLE = frozenset(
    "outcome ended_at why cure moved_bytes took_s resumed attempts points warnings evidence plan refusal expected moved proved "
    "exits last_words error exit run taken_at made_at entries bytes proved_at confirmed_at confirmed_by gone_at sound whole_at "
    "reading read_at scope entries_read files_read bytes_read reading_sound counts left_out not_before_at until_at begun_at "
    "told_at well_since_at due_at held_at sent_at health point of_files of_bytes restore_s check_argv check_exit check_output "
    "last newest current_at released_at well by_order oldest_at".split()
)
_MOST_SECONDS = 1e11  # three thousand years
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


def check_column(name: str, value: object) -> object:
    """Return the value of a column as it was before it was stored. Raises: ValueError · OverflowError for one of another type."""
    if value is None:
        if name not in NULLABLE:
            raise ValueError(f"{name} is empty")
        return None
    kind = type(value)
    if name.endswith("_at"):
        if kind is int:
            return from_microseconds(int(str(value)))
    elif name in WHOLE_NUMBERS:
        if kind is int:
            return value
    elif name in NUMBERS:
        if isinstance(value, int | float) and abs(value) <= _MOST_SECONDS:
            return value
    elif kind is str:
        return value
    elif isinstance(value, bytes):
        return value.decode("utf-8", "surrogateescape")
    raise ValueError(f"{name} holds {_show(value)}")


def needed(row: dict[str, object], *names: str) -> None:
    """Check columns that this table fills in every row, though another table does not. Raises: ValueError."""
    for name in names:
        if row[name] is None:
            raise ValueError(f"{name} is empty")


def _show(value: object) -> str:
    return repr(value[:40] if isinstance(value, str | bytes) else value)


def to_microseconds(instant: datetime) -> int:
    """Return the microseconds since 1970. Raises: ValueError for a naive instant."""
    if instant.tzinfo is None:
        raise ValueError(f"an instant without a time zone: {instant}")
    return (bound_instant(instant) - _EPOCH) // _MICROSECOND


def from_microseconds(count: int) -> datetime:
    """Return the instant of a count of microseconds, in UTC. Raises: OverflowError for a year that no calendar has."""
    return bound_instant(_EPOCH + timedelta(microseconds=count))
