"""`make demo-fleet`: a centre on a PostgreSQL of its own and three hosts, for real, in a folder that it removes at the end.

Each host has its own configuration, state and history. One sends a sign of life and then none; one makes a copy and is late.
"""

import os
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import psycopg

from tests.demo import CHECKOUT, say
from tests.fleet.postgres import PostgresServer

HOSTS = ("web-1", "web-2", "laptop")


class DemoHost:
    """One host: its folder, and poolferry in it."""

    def __init__(self, folder: Path, name: str) -> None:
        self.name = name
        self.folder = folder / name
        self.environment = os.environ | {
            "PYTHONPATH": str(CHECKOUT), "POOLFERRY_CONFIG": str(self.folder / "etc"), "POOLFERRY_STATE": str(self.folder / "var"),
        }  # fmt: skip

    def poolferry(self, *words: str, codes: tuple[int, ...] = (0,)) -> None:
        """Run a command before the reader's eyes. Raises: SystemExit when it ends otherwise than with one of the codes."""
        print(f"\n{self.name}$ poolferry {shlex.join(words)}", flush=True)
        done = subprocess.run([sys.executable, "-m", "orchestrator", *words], env=self.environment, check=False)
        if done.returncode not in codes:
            raise SystemExit(f"the demonstration stopped: poolferry {' '.join(words)} ended with {done.returncode}")

    def printed(self, *words: str) -> str:
        """Return what a command prints, and show both."""
        print(f"\n{self.name}$ poolferry {shlex.join(words)}", flush=True)
        argv = [sys.executable, "-m", "orchestrator", *words]
        told = subprocess.run(argv, env=self.environment, check=True, stdout=subprocess.PIPE, text=True).stdout
        print(told, end="")
        return told.strip()

    def make_job(self, limit: str) -> None:
        """Make a source with a file, and a job that is late after the limit."""
        source, jobs = self.folder / "documents", self.folder / "etc" / "jobs"
        for each in (source, jobs):
            each.mkdir(parents=True)
        (source / "letter.txt").write_text(f"A letter on {self.name}.\n")
        (self.folder / "etc" / "targets.toml").write_text(f'[place.backup]\npath = "{self.folder / "backup"}"\n')
        (jobs / "documents.toml").write_text(
            f'engine = "rsync"\nsource = "{source}"\ntarget = "backup"\nschedule = "0 2 * * *"\nlate-after = "{limit}"\n'
        )


def main() -> None:
    """Tell the whole story."""
    folder = Path(tempfile.mkdtemp(prefix="poolferry-demo-fleet-"))
    server = PostgresServer()
    try:
        server.start()
        tell(folder, server)
    finally:
        server.remove()
        shutil.rmtree(folder, ignore_errors=True)


def tell(folder: Path, server: PostgresServer) -> None:
    """Tell it, with a server that runs."""
    database = server.make_database()
    centre = DemoHost(folder, "centre")
    url = server.url(database)
    address = f"postgresql:///{database}?host={server.folder}&port={server.port}"
    say("A centre: a PostgreSQL database in which poolferry makes tables and roles of its own")
    centre.poolferry("fleet", "init", "--centre", url)
    hosts = [DemoHost(folder, name) for name in HOSTS]
    say(
        "Three hosts join it. At the centre `fleet invite` prints a line with a token that is good once; the host types that line"
    )
    for host in hosts:
        host.make_job("26h" if host.name != "web-2" else "2s")
        command = centre.printed("fleet", "invite", host.name, "--centre", url, "--address", address)
        _, *words = command.split()
        host.poolferry(*(word.strip("'") for word in words))
    say(
        "Each host makes its backup by itself, and then tells the centre of it, and within what time it will be heard again"
    )
    for host in hosts:
        host.poolferry("run", "documents")
        host.poolferry("fleet", "send", *(["--within", "1h"] if host.name != "laptop" else ["--within", "1m"]))
    say(
        "Five minutes later (the demonstration sets what the centre noted back): the laptop had promised a sign of life each minute, so it is silent; "
        "the job of web-2 is late, as its file says that a copy is old after 2 s"
    )
    age(url)
    centre.poolferry("fleet", "status", "--centre", url, codes=(4,))
    centre.poolferry("fleet", "hosts", "--centre", url)
    centre.poolferry("fleet", "runs", "--centre", url)
    say("PostgreSQL is stopped: a host makes its backup all the same, and what the centre is to know waits at the host")
    server.stop("fast")
    hosts[0].poolferry("run", "documents")
    hosts[0].poolferry("fleet", "send", codes=(1,))
    server.start()
    say("PostgreSQL is started again: the host tells what waited, nothing is lost and nothing is there twice")
    hosts[0].poolferry("fleet", "send")
    centre.poolferry("fleet", "runs", "--host", "web-1", "--centre", url)
    say(
        "Where to look next: jobs/fleet.md has all of it; `poolferry fleet metrics` prints numbers for Prometheus, `poolferry web --fleet` has pages"
    )


def age(url: str) -> None:
    """Let five minutes pass at the centre for the laptop, and a few seconds for web-2."""
    time.sleep(2.1)
    with psycopg.connect(url) as connection:
        connection.execute("ALTER TABLE poolferry.beats DISABLE TRIGGER seen")
        connection.execute(
            "UPDATE poolferry.beats SET seen_at = seen_at - interval '5 minutes', host_at = host_at - interval '5 minutes'"
            " WHERE host = (SELECT id FROM poolferry.hosts WHERE name = 'laptop')"
        )
        connection.execute("ALTER TABLE poolferry.beats ENABLE TRIGGER seen")


if __name__ == "__main__":
    main()
