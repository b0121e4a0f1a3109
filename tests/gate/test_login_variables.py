"""The variables that sshd takes from its clients, as its settings tell them, and what is said of those that are not harmless."""

import pytest

from orchestrator.gate.login_variables import (
    accepted_warning,
    parse_accepted_variables,
    sshd_settings_command,
    unseen_warning,
)


@pytest.mark.parametrize(
    ("said", "found"),
    [
        (b"acceptenv LANG LC_*\npermituserenvironment no\n", ()),
        (b"acceptenv LANG PERL5LIB\nAcceptEnv L* PERL5LIB\npermituserenvironment no\n", ("PERL5LIB", "L*")),
        (b"permituserenvironment LANG,LD_PRELOAD\n", ("PermitUserEnvironment LANG,LD_PRELOAD",)),
    ],
)
def test_those_that_may_reach_a_program_are_named(said: bytes, found: tuple[str, ...]) -> None:
    assert parse_accepted_variables(said) == found
    assert accepted_warning(found).startswith(
        f"sshd here takes more from its clients than their language: {', '.join(found)}. " if found else ""
    )
    assert bool(accepted_warning(found)) is bool(found)


def test_what_are_no_settings_is_no_clean_bill() -> None:
    with pytest.raises(ValueError, match="no settings of sshd"):
        parse_accepted_variables(b"port 22\n")
    assert "could not be seen (why)" in unseen_warning("why")
    assert sshd_settings_command("her").argv[:3] == ("sshd", "-T", "-C")
