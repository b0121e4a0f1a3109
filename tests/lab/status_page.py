"""The status page on a machine's own systemd: installed as a newcomer does it, and asked by its socket."""

from tests.lab.common import Machine

SOCKET = "/run/poolferry-web.sock"
# The machines are built with what runs need alone; these are without compiled parts, or do without them.
TAKEN = "starlette uvicorn jinja2 markupsafe h11 anyio idna sniffio typing_extensions.py"


ASK = """
import http.client, socket, sys
class Asked(http.client.HTTPConnection):
    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(60)
        self.sock.connect(sys.argv[1])
asked, body = Asked("localhost"), sys.argv[3] if len(sys.argv) > 3 else None
sent = {"Origin": "http://localhost", "Content-Type": "application/x-www-form-urlencoded"} if body else {}
asked.request("POST" if body else "GET", sys.argv[2], body, sent)
answer = asked.getresponse()
print(answer.status, answer.headers.get("location", "-"))
print(answer.read().decode())
"""


def ask(machine: Machine, path: str, *body: str) -> str:
    """Ask for a page by the socket, or send a form; return the status, where it leads, and the page."""
    return machine.sh(["/usr/bin/python3", "-c", ASK, SOCKET, path, *body], seconds=90).text


def install_page(machine: Machine, *more: str) -> None:
    """The units of the page, as a newcomer installs them; its socket listens when this returns. `more`: words of `setup web`."""
    site = "/mnt/poolferry/.venv/lib/python3*/site-packages"
    machine.sh(f"for each in {TAKEN}; do cp -rn {site}/$each /opt/poolferry/lib/python3*/site-packages/ || true; done")
    said = machine.poolferry("setup", "web", *more, check=True).text
    for command in said.partition("Then type:")[2].split("\n"):
        machine.sh(command.strip() or "true")
