"""Test which addresses are one's own."""

import pytest

from orchestrator.domain.place import is_public


@pytest.mark.parametrize(
    ("address", "public"),
    [
        ("10.0.0.1", False), ("172.16.0.1", False), ("172.31.255.255", False), ("192.168.1.1", False),
        ("127.0.0.1", False), ("169.254.3.4", False), ("::1", False), ("fe80::1%eth0", False), ("fd00::7", False),
        ("::ffff:10.0.0.1", False), ("::ffff:8.8.8.8", True), ("8.8.8.8", True), ("172.32.0.1", True),
        ("192.169.0.1", True), ("100.64.0.1", True), ("2001:db8::1", True), ("255.0.0.1", True),
        ("backup", None), ("", None), ("10.0.0", None),
    ],
)  # fmt: skip
def test_an_address(address: str, *, public: bool | None) -> None:
    assert is_public(address) is public
