"""Behind a reverse proxy: a real nginx, as jobs/web.md sets it up, names who asks; nobody else can, and not over TCP."""

import base64
import http.client
import re
import shutil
import socket
import ssl
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from urllib.parse import urlencode

import pytest

from orchestrator.app.acts import list_acts
from orchestrator.web.guard import NobodyNamed, ProxyUser
from tests.daemon.daemon_world import daemon, until
from tests.ferry import ROOT, Ferry
from tests.web.sites import OURS, client, form, serving, settings_of, started_by_systemd, token_in

NAME, HEADER = "backup.example.org", "X-Remote-User"
OPTIONS = ("--host", NAME, "--proxy-user", HEADER)
MAIN = """
daemon off; pid {folder}/pid; error_log {folder}/error.log; {user}
events {{ }}
http {{
    access_log off;
    client_body_temp_path {folder}/1; proxy_temp_path {folder}/2; fastcgi_temp_path {folder}/3; uwsgi_temp_path {folder}/4; scgi_temp_path {folder}/5;
{server}
}}
"""


def shown_block() -> str:
    """The lines for nginx that the page shows."""
    page = (ROOT / "jobs" / "web.md").read_text()
    assert f"poolferry setup web {' '.join(OPTIONS)}\n" in page
    (found,) = re.findall(r"```nginx\n(.*?)```", page, re.DOTALL)
    return str(found)


@contextmanager
def nginx(folder: Path, web_socket: Path) -> Iterator[int]:
    """A real nginx with the lines of the page, but for where its files and its port are; the port."""
    folder.mkdir()
    key = [
        "-newkey",
        "rsa:2048",
        "-nodes",
        "-keyout",
        f"{folder}/key",
        "-out",
        f"{folder}/cert",
        "-subj",
        f"/CN={NAME}",
    ]
    subprocess.run(["openssl", "req", "-x509", *key], check=True, capture_output=True)
    (folder / "users").write_text("ann:{PLAIN}secret\nb b:{PLAIN}secret\n")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    server = shown_block()
    for said, here in (
        ("listen 443 ", f"listen 127.0.0.1:{port} "), ("/etc/ssl/certs/backup.pem", f"{folder}/cert"),
        ("/etc/ssl/private/backup.key", f"{folder}/key"), ("/etc/nginx/backup.users", f"{folder}/users"), ("/run/poolferry-web.sock", str(web_socket)),
    ):  # fmt: skip
        assert server.count(said) == 1, said
        server = server.replace(said, here)
    user = "user root;" if folder.stat().st_uid == 0 else ""
    (folder / "conf").write_text(MAIN.format(folder=folder, server=server, user=user))
    program = shutil.which("nginx", path="/usr/sbin:/usr/bin")
    assert program, "make packages-test installs it"
    child = subprocess.Popen([program, "-c", f"{folder}/conf", "-e", f"{folder}/error.log"])
    try:
        until(lambda: _opens(port), "nginx listens", (folder / "error.log").read_text)
        yield port
    finally:
        child.terminate()
        child.wait(20)


def _opens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


class Visitor:
    """A browser at the far side of the proxy."""

    def __init__(self, port: int, user: str = "") -> None:
        self._port, self._sent = port, {"Host": NAME}
        if user:
            self._sent["Authorization"] = f"Basic {base64.b64encode(f'{user}:secret'.encode()).decode()}"

    @contextmanager
    def asked(self, path: str, fields: dict[str, str] | None = None, **more: str) -> Iterator[http.client.HTTPResponse]:
        """Ask for a page, or send a form."""
        unknown = ssl.create_default_context()
        unknown.check_hostname, unknown.verify_mode = False, ssl.CERT_NONE
        sent = self._sent | ({**OURS, "Origin": f"https://{NAME}"} if fields else {}) | more
        connection = http.client.HTTPSConnection("127.0.0.1", self._port, context=unknown, timeout=30)
        connection.request("POST" if fields else "GET", path, urlencode(fields) if fields else None, sent)
        with closing(connection), connection.getresponse() as answer:
            yield answer

    def ask(self, path: str, fields: dict[str, str] | None = None, **more: str) -> tuple[int, str, str]:
        """Ask; return the status, where it leads, and the page."""
        with self.asked(path, fields, **more) as answer:
            return answer.status, answer.headers.get("location", ""), answer.read().decode()


def test_a_real_nginx_names_who_asks_and_nobody_forges_it(ferry: Ferry) -> None:
    ferry.job()
    path = ferry.root / "web.sock"
    with (
        daemon(ferry) as clock,
        serving(ferry, "--socket", str(path), *OPTIONS),
        nginx(ferry.root / "nginx", path) as port,
    ):
        until((ferry.state / "control.sock").exists, "it listens", lambda: clock.log)
        assert Visitor(port).ask("/")[0] == 401
        ann = Visitor(port, "ann")
        pause = {"token": token_in(ann.ask("/jobs/photos")[2]), "act": "pause", "job": "photos", "span": "3d"}
        assert ann.ask("/acts", pause, **{HEADER: "root"})[:2] == (303, "/jobs/photos#asked")
        status, _, why = Visitor(port, "b b").ask("/acts", {**pause, "act": "resume", "span": ""})
        assert (status, f"what stands in {HEADER} is not one name" in why) == (403, True)
        (act,) = list_acts(settings_of(ferry), 9)
        assert act.who.startswith("ann (by proxy), through ")
        assert "ann (by proxy)" in ann.ask("/acts")[2]
        with ann.asked("/live/promises") as live:
            assert live.readline() == b"retry: 3000\n", "nothing is held back"
            live.readline()
            assert live.readline() == b"event: show\n"


NOBODY: tuple[Sequence[str], ...] = (
    (), ("",), ("ann", "ann"), ("ann", "bob"), ("ann, bob",), (" ann",), ("a b",), ("-ann",), ("ann\t",), ("ann\n",), ("caf\xe9",), ("a" * 65,),
    ("ann (by proxy)",), ("<b>",), ("\u0430nn",),
)  # fmt: skip


def test_one_plain_name_is_read_and_nothing_else() -> None:
    proxy = ProxyUser(HEADER)
    for given in NOBODY:
        with pytest.raises(NobodyNamed, match=HEADER):
            proxy.read(given)
    for name in ("ann", "ann@example.org", "a", "A.b_c+d-e", "a" * 64):
        assert proxy.read((name,)) == name


def test_who_is_named_by_nobody_gets_pages_and_no_act(ferry: Ferry) -> None:
    ferry.job()
    with daemon(ferry) as clock:
        until((ferry.state / "control.sock").exists, "it listens", lambda: clock.log)
        site = client(settings_of(ferry), proxy_user=ProxyUser(HEADER))
        body = urlencode(form(site, "acknowledge", job="photos"))
        told = site.post("/acts", content=body, headers=OURS)
        assert (told.status_code, "named nobody" in told.text) == (403, True)
        twice = [*OURS.items(), (HEADER, "ann"), (HEADER.lower(), "bob")]
        assert site.post("/acts", content=body, headers=twice).status_code == 403
        assert list_acts(settings_of(ferry), 9) == ()
        unasked = client(settings_of(ferry))
        body = urlencode(form(unasked, "acknowledge", job="photos"))
        assert unasked.post("/acts", content=body, headers={**OURS, HEADER: "ann"}).status_code == 303
        (act,) = list_acts(settings_of(ferry), 9)
        assert "ann" not in act.who, "without the option a header names nobody"


def test_the_header_never_counts_over_tcp(ferry: Ferry) -> None:
    ferry.job()
    for words in (("--listen", "127.0.0.1:0", "--proxy-user", HEADER), ("--demo", "--proxy-user", HEADER)):
        told = ferry.run("web", *words)
        assert (told.code, "--proxy-user counts on the socket alone" in told.err) == (2, True), told.err
    for name in ("", "X Remote", "X-Remote:", "X\n", "1X"):
        assert ferry.run("web", "--socket", str(ferry.root / "x.sock"), "--proxy-user", name).code == 2, name
        assert ferry.run("setup", "web", "--print", "--proxy-user", f"%{name}").code == 2, name
    with socket.create_server(("127.0.0.1", 0)) as passed:
        child = started_by_systemd(ferry, passed, None)
        _, said = child.communicate(timeout=20)
    assert child.returncode == 2
    assert b"a socket of the network" in said


def test_the_unit_gets_what_the_page_needs_behind_a_proxy(ferry: Ferry, tmp_path: Path) -> None:
    into = ("--into", str(tmp_path / "units"), "--users-into", str(tmp_path / "users"))
    assert ferry.run("setup", "web", *OPTIONS, *into).code == 0
    unit = (tmp_path / "units" / "poolferry-web.service").read_text()
    (line,) = re.findall(r"(?m)^ExecStart=(.*)$", unit)
    assert line.endswith(f" web {' '.join(OPTIONS)}")
