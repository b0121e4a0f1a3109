"""The door to the centre: limits on each wait, plain errors, and the library only where a fleet is declared."""

import subprocess
import sys
import time

import pytest

from orchestrator.domain.errors import CentreRefused, CentreUnreachable
from orchestrator.domain.fleet import FleetIdentity
from orchestrator.domain.machine import FleetOptions
from orchestrator.fleet.connection import connection_settings, open_centre
from tests.ferry import Ferry
from tests.fleet.centres import Centre
from tests.fleet.lines import SilentLine


def test_a_line_that_falls_silent_is_cut(centre: Centre, line: SilentLine) -> None:
    identity = centre.join("web-1")
    fleet = FleetOptions(centre=f"postgresql://127.0.0.1:{line.port}/{centre.database}")
    with open_centre(fleet, identity, purpose="test") as session:
        assert session.first("SELECT 1 AS one") == {"one": 1}
        line.silence()
        began = time.monotonic()
        with pytest.raises(CentreUnreachable, match=r"silent for 0\.5 s"):
            session.rows("SELECT 1", seconds=0.5)
        assert time.monotonic() - began < 5
        with pytest.raises(CentreUnreachable):
            session.rows("SELECT 1")


def test_the_server_ends_what_takes_too_long(centre: Centre) -> None:
    with open_centre(
        centre.options, centre.join("web-1"), purpose="test", limits={"statement_timeout": "50ms"}
    ) as session:
        with pytest.raises(CentreUnreachable, match="statement timeout"):
            session.rows("SELECT pg_sleep(30)")
        assert session.first("SELECT current_setting('application_name') AS it") == {"it": "poolferry test"}


def test_a_centre_that_is_away_or_does_not_know_us_is_told(centre: Centre) -> None:
    with pytest.raises(CentreUnreachable, match="gives no answer"):
        open_centre(FleetOptions(centre="postgresql://127.0.0.1:9/fleet"), None, purpose="test")
    stranger = FleetIdentity(host="web-1", role="poolferry_web_1_00000000", password="guessed")  # noqa: S106 - a wrong one
    with pytest.raises(CentreRefused, match="does not know this host"):
        open_centre(centre.options, stranger, purpose="test")
    assert "guessed" not in repr(stranger)


def test_a_network_is_never_crossed_without_the_centres_name_checked() -> None:
    told = connection_settings(FleetOptions(centre="postgresql://backups.example.org/poolferry"), None, purpose="test")
    assert (told["sslmode"], told["sslrootcert"]) == ("verify-full", "/etc/ssl/certs/ca-certificates.crt")
    assert "sslmode" not in connection_settings(FleetOptions(centre="postgresql:///poolferry"), None, purpose="test")


@pytest.mark.parametrize("command", [["--help"], ["status"], ["run", "photos"]])
def test_without_a_fleet_nothing_of_it_is_imported(ferry: Ferry, command: list[str]) -> None:
    ferry.job()
    program = "import sys; from orchestrator.cli import main; main(sys.argv[1:]); print(*sys.modules, file=sys.stderr)"
    done = subprocess.run(
        [sys.executable, "-c", program, *command], capture_output=True, text=True, timeout=60, env=ferry.variables()
    )
    loaded = done.stderr.split()
    assert "orchestrator.cli" in loaded, done.stderr
    ours = ("psycopg", "procrastinate", "orchestrator.fleet", "orchestrator.domain.fleet")
    assert [name for name in loaded if name.startswith(ours)] == []
