"""A machine's battery-backed clock, which goes on while it sleeps: read and set from outside, as nobody in a sleeping machine can."""

from datetime import datetime, timedelta

from tests.lab.qmp import Qmp

# Source: MC146818 data sheet; the century is where the firmware's tables say.
_PARTS = {"second": 0x00, "minute": 0x02, "hour": 0x04, "day": 0x07, "month": 0x08, "year": 0x09, "century": 0x32}
_WEEKDAY, _CONTROL, _HOLD = 0x06, 0x0B, 0x80


def put_ahead(qmp: Qmp, by: timedelta) -> None:
    """Sets the clock of a machine that sleeps: an awake one reads it at the same time, through the same two ports."""
    held = _read(qmp, _CONTROL)
    _write(qmp, _CONTROL, held | _HOLD)
    told = {name: _decimal(_read(qmp, at)) for name, at in _PARTS.items()}
    then = datetime(  # noqa: DTZ001 - it knows no zone
        told["century"] * 100 + told["year"], told["month"], told["day"], told["hour"], told["minute"], told["second"]
    )
    then += by
    parts = {name: getattr(then, name) for name in ("second", "minute", "hour", "day", "month")}
    for name, value in {**parts, "year": then.year % 100, "century": then.year // 100}.items():
        _write(qmp, _PARTS[name], _coded(value))
    _write(qmp, _WEEKDAY, then.isoweekday() % 7 + 1)
    _write(qmp, _CONTROL, held)


def _decimal(coded: int) -> int:
    return (coded >> 4) * 10 + (coded & 15)


def _coded(decimal: int) -> int:
    return decimal // 10 << 4 | decimal % 10


def _read(qmp: Qmp, register: int) -> int:
    _monitor(qmp, f"o /b 0x70 {register}")
    return int(_monitor(qmp, "i /b 0x71").partition("=")[2], 16)


def _write(qmp: Qmp, register: int, value: int) -> None:
    _monitor(qmp, f"o /b 0x70 {register}")
    _monitor(qmp, f"o /b 0x71 {value}")


def _monitor(qmp: Qmp, line: str) -> str:
    return str(qmp.ask("human-monitor-command", command_line=line))
