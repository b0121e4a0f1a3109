"""What the tests of the command line stand on.

Changes things.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.interfaces.ferry import Ferry
from tests.peers import MailServer, WebPeer, serving


@pytest.fixture
def ferry(tmp_path: Path) -> Ferry:
    """A configuration without jobs yet."""
    return Ferry(tmp_path)


@pytest.fixture
def server() -> Iterator[MailServer]:
    """A mail server without TLS."""
    with serving() as peer:
        yield peer


@pytest.fixture
def web() -> Iterator[WebPeer]:
    """A web peer, ended afterwards."""
    peer = WebPeer()
    yield peer
    peer.close()
