"""The door to the centre: limits on each wait, plain errors, and the library only where a fleet is declared."""

import os
import re
import shlex
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from orchestrator.domain.errors import CentreRefused, CentreUnreachable
from orchestrator.domain.fleet import FleetIdentity
from orchestrator.domain.machine import FleetOptions
from orchestrator.fleet.connection import CentreSession, connection_settings, open_centre
from orchestrator.fleet.enrolment import invite_host, join_centre
from tests.daemon.daemon_world import until
from tests.ferry import Ferry
from tests.fleet.centres import Centre, make_centre
from tests.fleet.lines import SilentLine
from tests.fleet.postgres import PostgresServer


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
    nowhere = f"postgresql:///fleet?host={centre.server.folder}&port=9"
    with pytest.raises(
        CentreUnreachable, match=r"gives no answer: connection to server .*; Is the server running"
    ) as away:
        open_centre(FleetOptions(centre=nowhere), None, purpose="test")
    (shows,) = re.findall("`([^`]*)`", away.value.hint or "")
    assert subprocess.run(shlex.split(shows), check=True, capture_output=True, text=True).stdout.startswith(
        "Ver Cluster"
    )
    with pytest.raises(CentreUnreachable, match="gives no answer"):
        open_centre(FleetOptions(centre="postgresql://127.0.0.1:9/fleet"), None, purpose="test")
    stranger = FleetIdentity(host="web-1", role="poolferry_web_1_00000000", password="guessed")  # noqa: S106 - a wrong one
    with pytest.raises(CentreRefused, match="does not know this host"):
        open_centre(centre.options, stranger, purpose="test")
    assert "guessed" not in repr(stranger)


def test_what_a_newer_host_asks_for_in_vain_is_not_taken_for_a_lost_password(centre: Centre) -> None:
    with centre.administrator() as session, pytest.raises(CentreRefused, match="refused a statement: column"):
        session.rows("SELECT what_is_to_come FROM poolferry.hosts")


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
    ours = ("psycopg", "orchestrator.fleet", "orchestrator.domain.fleet")
    assert [name for name in loaded if name.startswith(ours)] == []


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
@pytest.mark.parametrize("name", ["root-certificate", "certificate", "key"])
def test_a_file_where_this_user_may_not_look_is_not_told_as_gone(tmp_path: Path, name: str) -> None:
    (tmp_path / "own").mkdir(0o700)
    file = tmp_path / "own" / "web-1.pem"
    file.touch()
    fleet = FleetOptions(centre="postgresql://localhost:9/fleet", **{name.replace("-", "_"): str(file)})
    with pytest.raises(CentreUnreachable):
        open_centre(fleet, None, purpose="test")
    os.seteuid(65534)
    try:
        with pytest.raises(CentreRefused, match=rf"this user cannot look at the {name} .* \(Permission denied\)"):
            open_centre(fleet, None, purpose="test")
    finally:
        os.seteuid(0)


SIGN = "x509 -req -CA {ca}.pem -CAkey {ca}.key -copy_extensions copy -days {days} -in {what}.csr -out {what}.pem"


def openssl(folder: Path, *lines: str) -> None:
    """Call openssl in a folder."""
    for line in lines:
        subprocess.run(["openssl", *line.split()], cwd=folder, check=True, capture_output=True)


def put(server: PostgresServer, folder: Path, *names: str) -> None:
    """Give the server files that only it can read."""
    owner = server.data.stat()
    for name in names:
        (server.data / name).write_bytes((folder / name).read_bytes())
        (server.data / name).chmod(0o600)
        os.chown(server.data / name, owner.st_uid, owner.st_gid)


def test_over_tls_the_centre_must_have_the_name_that_was_typed(tmp_path: Path) -> None:
    server = PostgresServer(ssl="on", ssl_cert_file="server.pem", ssl_key_file="server.key", ssl_ca_file="root.pem")
    openssl(
        tmp_path,
        "req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=root -keyout root.key -out root.pem",
        "req -newkey rsa:2048 -nodes -subj /CN=localhost -addext subjectAltName=DNS:localhost -keyout server.key -out server.csr",
        SIGN.format(ca="root", days=2, what="server"),
    )
    put(server, tmp_path, "server.pem", "server.key", "root.pem")
    (server.data / "pg_hba.conf").write_text(
        "local all postgres trust\nhostssl all all all scram-sha-256 clientcert=verify-full\n"
    )
    try:
        server.start()
        made = make_centre(server)
        with made.administrator() as session:
            invitation = invite_host(session, "web-1")
        openssl(
            tmp_path,
            f"req -newkey rsa:2048 -nodes -subj /CN={invitation.role} -keyout web-1.key -out web-1.csr",
            SIGN.format(ca="root", days=2, what="web-1"),
        )

        def at(name: str, **more: str) -> FleetOptions:
            root = str(tmp_path / "root.pem")
            return FleetOptions(
                centre=f"postgresql://{name}:{server.port}/{made.database}", root_certificate=root, **more
            )

        own = {"certificate": str(tmp_path / "web-1.pem"), "key": str(tmp_path / "web-1.key")}
        with pytest.raises(CentreUnreachable, match="does not match host name"):
            join_centre(at("127.0.0.1", **own), invitation.token, machine="m")
        with pytest.raises(CentreRefused, match="does not know this host"):
            join_centre(at("localhost"), invitation.token, machine="m")
        identity = join_centre(at("localhost", **own), invitation.token, machine="m")
        with open_centre(at("localhost", **own), identity, purpose="test") as session:
            row = session.first("SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()")
        assert row == {"ssl": True}
        _certificates_run_out_and_are_renewed(
            tmp_path, server, lambda: open_centre(at("localhost", **own), identity, purpose="test")
        )
    finally:
        server.remove()


def sign_for_a_moment(folder: Path, authority: str, what: str) -> None:
    """Sign a certificate that ends when it begins, and wait until it has. Why not one of yesterday: OpenSSL 3.5 makes none."""
    openssl(folder, SIGN.format(ca=authority, days=0, what=what))
    still = ["openssl", "x509", "-noout", "-checkend", "0", "-in", f"{what}.pem"]
    until(lambda: subprocess.run(still, cwd=folder, capture_output=True).returncode == 1, "it has run out")


def _certificates_run_out_and_are_renewed(
    folder: Path, server: PostgresServer, connect: Callable[[], CentreSession]
) -> None:
    """Each time the host says that it is a certificate, and goes on by itself once there is another one."""
    sign_for_a_moment(folder, "root", "web-1")
    with pytest.raises(CentreRefused, match="certificate") as refused:
        connect()
    assert "openssl x509 -noout -subject -enddate -in" in refused.value.hint
    openssl(
        folder,
        SIGN.format(ca="root", days=2, what="web-1"),
        "req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=new -keyout new.key -out new.pem",
        SIGN.format(ca="new", days=2, what="server"),
    )
    put(server, folder, "server.pem")
    server.stop("fast")
    server.start()
    with pytest.raises(CentreRefused, match="certificate"):
        connect()
    with (folder / "root.pem").open("ab") as file:  # an authority that is renewed: both for a while
        file.write((folder / "new.pem").read_bytes())
    connect().close()
    for name in ("web-1.pem", "web-1.key", "root.pem"):
        (folder / name).rename(folder / "away")
        with pytest.raises(CentreRefused, match=rf"{name} of \[fleet\] is gone"):
            connect()
        (folder / "away").rename(folder / name)
    sign_for_a_moment(folder, "new", "server")
    put(server, folder, "server.pem")
    server.stop("fast")
    server.start()
    with pytest.raises(CentreRefused, match="certificate"):
        connect()
