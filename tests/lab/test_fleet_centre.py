"""The centre of a fleet on a real systemd: its watch and its page in their sandboxes, by the real socket, and a PostgreSQL that dies."""

import io
import platform
import subprocess
import tarfile
from pathlib import Path

import pytest

from tests.lab.common import Machine
from tests.lab.service import PATIENCE, until
from tests.lab.status_page import ask, install_page

pytestmark = pytest.mark.virtual

FLAVOUR = "bookworm"
SERVER = Path("/usr/lib/postgresql/15")
SHARE = Path("/usr/share/postgresql/15")
NAMES = Path(
    "/lib/x86_64-linux-gnu/libnss_systemd.so.2"
)  # by which a server knows the user of the page; recommended by Debian's systemd
# The machines are built with what runs need alone: these come from this one, where it is the same Debian.
LIBRARIES = "psycopg psycopg_binary psycopg_binary.libs typing_extensions.py"
UNIT = """
[Service]
User=postgres
RuntimeDirectory=postgresql
Environment=LD_LIBRARY_PATH=/opt/pg/so
ExecStart=/usr/lib/postgresql/15/bin/postgres -D /var/lib/pg -c unix_socket_directories=/run/postgresql -c listen_addresses= -c jit=off
ExecReload=/bin/kill -HUP $MAINPID
"""
CLIENT = '#!/bin/sh\nLD_LIBRARY_PATH=/opt/pg/so exec /usr/lib/postgresql/15/bin/{name} "$@"\n'
# As jobs/fleet.md says it.
TYPED = "runuser -u postgres -- createuser --superuser root; createdb poolferry"


def other_debian() -> bool:
    """Return True where this machine's server does not run on that flavour."""
    return platform.freedesktop_os_release().get("VERSION_CODENAME") != FLAVOUR or not (
        SERVER.exists() and NAMES.exists()
    )


def server_files() -> bytes:
    """The server of this machine with its libraries, as an archive for another one of the same Debian."""
    programs = [SERVER / "bin" / name for name in ("postgres", "initdb", "createuser", "createdb")]
    told = subprocess.run(["ldd", *map(str, programs)], check=True, capture_output=True, text=True).stdout
    libraries = {word for line in told.splitlines() for word in line.split() if word.startswith("/") and ".so" in word}
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w:gz", compresslevel=1, dereference=True) as tar:
        for path in (*programs, *(SERVER / "lib" / name for name in ("plpgsql.so", "dict_snowball.so")), SHARE, NAMES):
            tar.add(path, arcname=str(path), filter=lambda each: None if "/locale" in each.name else each)
        for path in map(Path, sorted(libraries)):
            if not path.name.startswith(("libc.so", "ld-linux", "libm.so", "libresolv")):
                tar.add(path, arcname=f"/opt/pg/so/{path.name}")
    return archive.getvalue()


def install_server(machine: Machine) -> None:
    """A PostgreSQL as Debian's: its own user, its socket, peers by the name of their user; it runs when this returns."""
    machine.write("/root/pg.tgz", server_files())
    machine.sh("sed -i 's/^passwd:.*/passwd: files systemd/' /etc/nsswitch.conf")
    machine.sh(
        "tar -xzf /root/pg.tgz -C / && rm /root/pg.tgz && useradd --system postgres && install -d -o postgres /var/lib/pg"
    )
    init = "/usr/lib/postgresql/15/bin/initdb -D /var/lib/pg -A peer -E UTF8 --locale=C -N"
    machine.sh(f"setpriv --reuid=postgres --clear-groups env LD_LIBRARY_PATH=/opt/pg/so {init}", seconds=PATIENCE)
    for name in ("createuser", "createdb"):
        machine.write(f"/usr/local/bin/{name}", CLIENT.format(name=name), mode=0o755)
    machine.write("/etc/systemd/system/postgresql.service", UNIT)
    machine.sh(
        "systemctl daemon-reload; systemctl start postgresql.service; until test -S /run/postgresql/.s.PGSQL.5432; do sleep 0.2; done"
    )
    machine.sh(TYPED)
    site = "/mnt/poolferry/.venv/lib/python3*/site-packages"
    machine.sh(f"for each in {LIBRARIES}; do cp -rn {site}/$each /opt/poolferry/lib/python3*/site-packages/; done")


@pytest.mark.skipif(other_debian(), reason=f"the server of another Debian does not run on {FLAVOUR}")
@pytest.mark.flavours(FLAVOUR)
@pytest.mark.long
def test_the_units_of_a_centre_run_in_their_sandboxes(master: Machine) -> None:
    install_server(master)
    master.write(f"{master.config}/poolferry.toml", '[fleet]\ncentre = "postgresql:///poolferry"\n')
    master.poolferry("fleet", "init", check=True)
    master.poolferry("fleet", "invite", "web-1", check=True)
    for command in master.poolferry("setup", "fleet", check=True).lines:
        if command.strip().startswith("systemctl"):
            master.sh(command.strip())
    said = "journalctl -u poolferry-fleet.service --no-pager -o cat"
    assert master.sh("systemctl is-active poolferry-fleet.service").text.strip() == "active"
    last = master.sh("systemd-analyze security poolferry-fleet.service | tail -1").text
    assert float(last.split(": ")[1].split()[0]) <= 2.5, last

    install_page(master, "--fleet")
    page = ask(master, "/fleet")
    assert page.startswith("200"), page
    assert "1 invited" in page

    master.sh("systemctl kill --signal=KILL postgresql.service; sleep 1")
    assert ask(master, "/fleet").startswith("503")
    master.sh("systemctl restart poolferry-fleet.service")
    until(master, lambda: "gives no answer" in master.sh(said).text)
    master.sh(
        "systemctl reset-failed postgresql.service; systemctl start postgresql.service; sleep 1; systemctl restart poolferry-fleet.service"
    )
    until(master, lambda: ask(master, "/fleet").startswith("200"))
    assert master.sh("systemctl is-active poolferry-fleet.service").text.strip() == "active"
    assert "Traceback" not in master.sh(said).text
