"""Variables that sshd takes from its clients are looked at when a gate is set up: they would reach what starts the gate."""

import os
import shlex
from pathlib import Path

import pytest

from orchestrator.gate.login_variables import parse_accepted_variables
from tests.whole.house import House, Ran
from tests.whole.sshd import make_key

pytestmark = pytest.mark.slow
OURS = "/etc/ssh/sshd_config"


def set_up(house: House, tmp_path: Path, settings: str) -> Ran:
    """Set a gate up on a machine whose sshd has these settings."""
    make_key(tmp_path / "key")
    (tmp_path / "settings").write_text(f"HostKey {tmp_path}/key\n{settings}\n")
    os.makedirs("/run/sshd", mode=0o755, exist_ok=True)
    line = f'mount --bind {shlex.quote(str(tmp_path / "settings"))} {OURS} && exec "$@"'
    words = (
        "--reads",
        str(house.source),
        "--key",
        (tmp_path / "key.pub").read_text(),
        "--into",
        str(tmp_path / "keys"),
    )
    told = house.call("setup", "gate", "vault", *words, before=("unshare", "--mount", "sh", "-c", line, "-"))
    assert told.code == 0, told
    return told


@pytest.mark.root
@pytest.mark.namespace
@pytest.mark.parametrize(
    ("settings", "named"),
    [
        ("AcceptEnv LANG LC_*", ()),
        ("AcceptEnv LANG LC_* COLORTERM NO_COLOR", ()),
        ("", ()),
        ("AcceptEnv *", ("*",)),
        ("AcceptEnv LANG L*\nAcceptEnv PERL5LIB", ("L*", "PERL5LIB")),
        ("PermitUserEnvironment yes", ("PermitUserEnvironment yes",)),
        ("PermitUserEnvironment LANG,LD_PRELOAD", ("PermitUserEnvironment LANG,LD_PRELOAD",)),
        ("Match User nobody\nAcceptEnv LD_*", ()),
        ("Match User root\nAcceptEnv LD_*", ("LD_*",)),
    ],
)  # fmt: skip
def test_a_set_up_warns_of_variables_that_clients_may_set(
    house: House, tmp_path: Path, settings: str, named: tuple[str, ...]
) -> None:
    told = set_up(house, tmp_path, settings)
    (warning,) = told["warnings"] or [""]
    assert ("LD_PRELOAD" in warning) == bool(named), told
    assert all(f"{each}" in warning for each in named), told
    assert not named or f"their language: {', '.join(named)}. " in warning, told


@pytest.mark.root
@pytest.mark.namespace
def test_settings_that_cannot_be_seen_are_said_to_be_so(house: House, tmp_path: Path) -> None:
    """As for a plain user, whom sshd shows none of them."""
    (warning,) = set_up(house, tmp_path, "AcceptEnvironment LANG")["warnings"]
    assert f"could not be seen ({OURS}: line 2: Bad configuration option: AcceptEnvironment)" in warning, warning
    assert "sshd -T | grep -i -e acceptenv -e permituserenvironment" in warning


@pytest.mark.parametrize("said", [b"", b"port 22\n", b"acceptenv LANG\n"])
def test_what_are_no_settings_is_no_clean_bill(said: bytes) -> None:
    with pytest.raises(ValueError, match="no settings of sshd"):
        parse_accepted_variables(said)
