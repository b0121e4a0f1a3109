"""The page jobs/fleet.md: its commands are typed as they stand, as root at a centre and on a host that joins it."""

import os
import re
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from tests.fleet.centres import Centre
from tests.fleet.first_version import say_all
from tests.fleet.postgres import PostgresServer, program
from tests.history.populated import populate

PAGE = Path(__file__).parents[2] / "jobs" / "fleet.md"
COMMAND = f'#!/bin/sh\nPYTHONPATH={PAGE.parents[1]} exec {sys.executable} -m orchestrator "$@"\n'
INSTALLED = ("apt-get install", "pip install")  # by `make`, before any test
SYSTEMCTL = '#!/bin/sh\necho "$@" >> {folder}/systemctl\n'


def lines_of_the_page() -> list[str]:
    """The lines of its blocks for a shell, in their order."""
    blocks = re.findall(r"^```sh\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    return [line for block in blocks for line in block.splitlines() if not line.startswith(INSTALLED)]


class Typist:
    """Types lines of the page at a centre; what belongs to the whole machine is done below a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        for name, text in (("poolferry", COMMAND), ("systemctl", SYSTEMCTL.format(folder=folder))):
            (folder / "bin").mkdir(exist_ok=True)
            (folder / "bin" / name).write_text(text)
            (folder / "bin" / name).chmod(0o755)
        for made in ("var/backups", "var/lib/prometheus/node-exporter", "centre", "copied"):
            (folder / made).mkdir(parents=True)
        (folder / "centre" / "poolferry.toml").write_text('[fleet]\ncentre = "postgresql:///poolferry"\n')
        self.host = {"POOLFERRY_CONFIG": f"{folder}/etc", "POOLFERRY_STATE": f"{folder}/lib"}
        self.server = self._begin()

    def _begin(self) -> PostgresServer:
        server = PostgresServer()
        (server.data / "pg_hba.conf").write_text(
            "local all postgres trust\nlocal all root peer\nlocal all all scram-sha-256\n"
        )
        server.start()
        return server

    def lose_the_centre(self) -> None:
        """Put a new server in the place of the old one."""
        self.server.remove()
        self.server = self._begin()
        self.typed("runuser -u postgres -- createuser --superuser root")

    @property
    def address(self) -> str:
        """The centre's address for a host."""
        return f"postgresql:///poolferry?host={self.server.folder}&port={self.server.port}"

    def typed(self, line: str, more: dict[str, str] | None = None, *, codes: tuple[int, ...] = (0,)) -> str:
        """Type one line, and return what it says."""
        if line.startswith("poolferry setup"):
            line += f" --into {self.folder}/units" + (f" --users-into {self.folder}/users" if " web" in line else "")
        here = os.environ | {
            "PATH": f"{self.folder}/bin:{Path(program('createdb')).parent}:{os.environ['PATH']}", "LC_ALL": "C.UTF-8",
            "PGHOST": str(self.server.folder), "PGPORT": str(self.server.port),
            "POOLFERRY_CONFIG": f"{self.folder}/centre", "POOLFERRY_STATE": f"{self.folder}/state",
        }  # fmt: skip
        line = line.replace("/var/", f"{self.folder}/var/")
        done = subprocess.run(["sh", "-c", line], env=here | (more or {}), cwd="/", capture_output=True, text=True)
        assert done.returncode in codes, (line, done.stdout, done.stderr)
        return done.stdout

    def copy_leaves(self, line: str) -> None:
        """Copy the host as it is, let the first one go on, and type on the copy what makes it leave alone."""
        self.typed(f"cp -a {self.folder}/etc {self.folder}/lib {self.folder}/copied/")
        self.typed("poolferry fleet send", self.host)
        there = {"POOLFERRY_CONFIG": f"{self.folder}/copied/etc", "POOLFERRY_STATE": f"{self.folder}/copied/lib"}
        self.typed("poolferry fleet send", there, codes=(1,))
        self.typed(line, there)
        assert "none waits" in self.typed("poolferry fleet send", self.host)

    def joins(self, invited: str) -> None:
        """Type on the host what `fleet invite` printed."""
        address = re.search(r"postgresql://[^ ]+", invited)
        assert address is not None
        assert "joined as web-1" in self.typed(invited.replace(address[0], f"'{self.address}'"), self.host)
        assert "none waits" in self.typed("poolferry fleet send", self.host)


@pytest.mark.root
def test_what_the_page_says_works_as_it_stands(tmp_path: Path) -> None:
    desk = Typist(tmp_path)
    try:
        lines = lines_of_the_page()
        assert len(lines) == 34
        for line in lines:
            if line == "poolferry fleet leave":
                desk.copy_leaves(line)
                continue
            if line.startswith("runuser -u postgres -- psql"):
                desk.lose_the_centre()
            came = desk.typed(line, codes=(0, 4) if "fleet status" in line or "fleet watch" in line else (0,))
            if "fleet invite web-1" in line:
                if "--again" in line:
                    desk.typed("rm -r $POOLFERRY_STATE $POOLFERRY_CONFIG", desk.host)
                desk.joins(came)
                if "--again" in line:
                    populate(tmp_path / "lib" / "history.sqlite")
                    desk.typed("poolferry fleet send", desk.host)
            if "fleet forget" in line:
                desk.typed("rm -r $POOLFERRY_STATE $POOLFERRY_CONFIG", desk.host)
                desk.joins(desk.typed("poolferry fleet invite web-1"))
        assert stat.S_IMODE((tmp_path / "var/backups/poolferry-roles.sql").stat().st_mode) == 0o600
        assert (tmp_path / "systemctl").read_text().splitlines() == [
            "enable --now poolferry-web.socket", "enable --now poolferry-fleet.service",
        ]  # fmt: skip
        (tmp_path / "etc" / "poolferry.toml").write_text(f'[fleet]\ncentre = "{desk.address}"\n')
        populate(tmp_path / "lib" / "history.sqlite")
        assert "none waits" in desk.typed("poolferry fleet send", desk.host), (
            "its password is good at the new server, too"
        )
        assert "web-1" in desk.typed("poolferry fleet runs")
    finally:
        desk.server.remove()


def test_a_centre_of_today_understands_a_host_of_the_first_version(centre: Centre) -> None:
    with centre.session(centre.join("old")) as session:
        for _ in range(2):
            say_all(session)
