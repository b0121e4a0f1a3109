"""Jobs that fall sick and get well, channels to the peers, and looks at any time."""

from datetime import datetime
from typing import Any

from orchestrator import compose
from orchestrator.app.notify import notify_changes
from orchestrator.domain.units import Seconds
from tests.ferry import Ferry
from tests.peers import MailServer, WebPeer, read


class Sick:
    """A job whose runs fail as long as it is sick."""

    def __init__(self, ferry: Ferry, name: str = "photos", more: str = "") -> None:
        self.ferry, self.name = ferry, name
        self.mark = ferry.root / f"{name}-is-sick"
        ferry.job(name, f'{more}\n[hooks]\nbefore = ["/usr/bin/test", "!", "-e", "{self.mark}"]\n')

    def run(self, *, sick: bool) -> int:
        """One run, as cron starts it."""
        if sick:
            self.mark.touch()
        else:
            self.mark.unlink(missing_ok=True)
        return self.ferry.run("run", self.name).code


def declare(ferry: Ferry, *tables: str) -> None:
    """The channels of poolferry.toml."""
    (ferry.config / "poolferry.toml").write_text("\n".join(tables))


def by_mail(server: MailServer, name: str = "me", more: str = "") -> str:
    """A channel to the mail server."""
    return f'[notice.{name}]\nkind = "mail"\nto = ["{name}@example.org"]\nsmtp = "{server.address}"\nsecurity = "none"\n{more}'


def by_ntfy(web: WebPeer, name: str = "phone", more: str = "") -> str:
    """A channel to the web peer."""
    return f'[notice.{name}]\nkind = "ntfy"\ntopic = "{web.url}/{name}"\n{more}'


def subjects(server: MailServer) -> list[str]:
    """Return what the mails say after the machine's name."""
    return [str(read(raw)["Subject"]).partition(": ")[2] for *_, raw in server.letters]


def notices(ferry: Ferry) -> list[dict[str, Any]]:
    """Return what `poolferry notices` says, oldest first."""
    found: list[dict[str, Any]] = ferry.run("notices", "--json").value["notices"]
    return found[::-1]


def states(ferry: Ferry) -> list[tuple[str, str, str]]:
    """Channel, kind and state of each notice."""
    return [(each["channel"], each["kind"], each["state"]) for each in notices(ferry)]


def look(ferry: Ferry, now: datetime, *, within: float = 10, awake: datetime | None = None) -> list[str]:
    """Return what a look at this time says of itself."""
    where = where_of(ferry)
    said: list[str] = []
    jobs, machine = compose.read_configuration(where).jobs, compose.read_machine_config(where)
    notify_changes(where, jobs, machine, now, say=said.append, within=Seconds(within), awake=awake)
    return said


def where_of(ferry: Ferry) -> compose.Directories:
    """Return where its configuration and state lie."""
    return compose.find_directories(str(ferry.config), str(ferry.state), {}, root=True)
