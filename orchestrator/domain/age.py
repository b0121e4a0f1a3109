"""Ages by a clock that may have been wrong: what is dated after now has no known age, and holds nothing up."""

from datetime import datetime, timedelta

from orchestrator.domain.units import Seconds, show_duration

CLOCKS_DIFFER = timedelta(hours=1)  # of two machines; what is dated further after now was dated by a wrong clock


def is_misdated(at: datetime, now: datetime) -> bool:
    """Return True when an instant is further after now than two clocks differ."""
    return at - now > CLOCKS_DIFFER


def is_over(at: datetime | None, limit: Seconds | timedelta, now: datetime) -> bool:
    """Return True when `limit` seconds have gone since an instant; also where there is none, or where a wrong clock dated it after now.

    Why no more tolerance than the limit: what is done each minute would rest for an hour.
    """
    span = limit if isinstance(limit, timedelta) else timedelta(seconds=limit)
    return at is None or now - at >= span or at - now > min(span, CLOCKS_DIFFER)


def is_older(at: datetime, limit: Seconds, now: datetime) -> bool:
    """Return True when more than `limit` seconds have gone since an instant, or where a wrong clock dated it after now."""
    return now - at > timedelta(seconds=limit) or is_misdated(at, now)


def show_age(at: datetime, now: datetime) -> str:
    """Format how long ago something was, for people: "3 d 4 h ago"; what a wrong clock dated is "dated 366 d after now"."""
    age = (now - at).total_seconds()
    return f"dated {show_duration(-age)} after now" if is_misdated(at, now) else f"{show_duration(max(age, 0.0))} ago"
