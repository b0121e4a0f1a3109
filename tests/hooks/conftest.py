"""Fixtures of the hooks' tests: calling one as the runner does, a web peer that fails and hangs."""

import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.peers import WebPeer

HOOKS = Path(__file__).parents[2] / "hooks"
PATH = "/usr/local/bin:/usr/bin:/bin"  # what a clean environment has: no sbin, no shims

Answer = subprocess.CompletedProcess[str]


@pytest.fixture
def hook(tmp_path: Path) -> Callable[..., Answer]:
    """call(argv…, event=…, **facts): the end of the hook, which runs in a clean environment."""

    def call(
        *argv: str, event: str, report: str = "{}", path: str = PATH, credentials: Path | None = None, **facts: str
    ) -> Answer:
        told = {"event": event, "contract": "1", "job": "photos", "run": "17"} | facts
        environment = {f"POOLFERRY_{name.upper()}": value for name, value in told.items()}
        environment |= {"PATH": path, "HOME": str(tmp_path)}
        environment |= {"CREDENTIALS_DIRECTORY": str(credentials)} if credentials else {}
        environment |= {name: os.environ[name] for name in ("SSL_CERT_FILE",) if name in os.environ}
        return subprocess.run(
            [str(HOOKS / argv[0]), *argv[1:]], input=report, env=environment, capture_output=True, text=True, timeout=50
        )

    return call


@pytest.fixture
def web() -> Iterator[WebPeer]:
    """A web peer, ended afterwards."""
    peer = WebPeer()
    yield peer
    peer.close()
