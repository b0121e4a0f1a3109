"""`setup systemd`: units that name this program and these directories, written, shown, taken away."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from orchestrator import compose
from orchestrator.app.systemd_state import (
    ALL_UNITS,
    DAEMON_UNITS,
    FLEET_UNITS,
    FORMER_UNITS,
    RULES_FILE,
    SHIPPED,
    TIMER_UNITS,
    USERS_FILE,
    WEB_UNITS,
    unit_texts,
)
from orchestrator.cli.terminal.errors import report_errors
from orchestrator.cli.terminal.screen import Terminal
from tests.ferry import Ferry


def units(
    program: str = "/opt/p/bin/poolferry", config: str = "/etc/poolferry", state: str = "/var/lib/poolferry"
) -> dict[str, str]:
    return unit_texts(compose.shipped_units(), program=program, config=config, state=state)


def test_all_units_are_shipped_and_named() -> None:
    assert set(compose.shipped_units()) == {*ALL_UNITS, *WEB_UNITS, *FLEET_UNITS, RULES_FILE, USERS_FILE}
    assert set(ALL_UNITS) == {*DAEMON_UNITS, *TIMER_UNITS}


def test_the_units_call_the_program_that_installs_them() -> None:
    texts = units("/opt/pool ferry/bin/poolferry")
    called = [line for text in texts.values() for line in text.splitlines() if line.startswith("ExecStart=")]
    assert sorted(called) == [
        'ExecStart="/opt/pool ferry/bin/poolferry" daemon',
        'ExecStart="/opt/pool ferry/bin/poolferry" disks scan --identity %i',
        'ExecStart="/opt/pool ferry/bin/poolferry" fleet watch --every 5m',
        'ExecStart="/opt/pool ferry/bin/poolferry" run %i',
        'ExecStart="/opt/pool ferry/bin/poolferry" run --due',
        'ExecStart="/opt/pool ferry/bin/poolferry" verify --due',
        'ExecStart="/opt/pool ferry/bin/poolferry" web',
    ]
    assert not any(SHIPPED in text for text in texts.values())


def test_usual_directories_are_left_to_systemd() -> None:
    text = units()["poolferry.service"]
    assert "StateDirectory=poolferry\n" in text
    assert "POOLFERRY_" not in text


def test_other_directories_are_told() -> None:
    text = units(config="/srv/100% mine", state='/srv/a"b')["poolferry.service"]
    assert (
        '[Service]\nEnvironment="POOLFERRY_CONFIG=/srv/100%% mine"\nEnvironment="POOLFERRY_STATE=/srv/a\\"b"\n' in text
    )
    assert "StateDirectory" not in text


@pytest.mark.parametrize("unit", sorted(name for name in ALL_UNITS if name.endswith(".service")))
def test_no_hardening_hides_mounts(unit: str) -> None:
    hiding = (
        "ProtectSystem PrivateTmp ProtectHome PrivateDevices ProtectKernelTunables ProtectControlGroups ProtectProc "
        "ProtectKernelModules ProtectKernelLogs BindPaths ReadOnlyPaths InaccessiblePaths PrivateMounts PrivateUsers "
        "MountFlags RestrictSUIDSGID DynamicUser RootDirectory TemporaryFileSystem"
    ).split()
    keys = {line.partition("=")[0] for line in units()[unit].splitlines() if not line.startswith("#")}
    assert not keys & set(hiding)


def test_written_and_taken_away(ferry: Ferry, tmp_path: Path) -> None:
    into, rules = tmp_path / "units", ("--rules-into", str(tmp_path / "rules"))
    (into).mkdir()
    (into / "other.service").write_text("[Unit]\n")
    said = ferry.run("setup", "systemd", "--into", str(into), *rules)
    assert f"wrote {into}/poolferry.service" in said.out
    assert "systemctl enable --now poolferry.service" in said.out
    program = Path(sys.executable).with_name("poolferry")
    assert f"ExecStart={program} daemon\n" in (into / "poolferry.service").read_text()
    assert ferry.run("setup", "systemd", "--into", str(into), *rules, "--timer", "--json").value["next"] == [
        "systemctl enable --now poolferry-due.timer"
    ]
    assert {path.name for path in into.iterdir()} == {*ALL_UNITS, "other.service"}
    assert [path.name for path in (tmp_path / "rules").iterdir()] == [RULES_FILE]
    ferry.run("setup", "systemd", "--into", str(into), *rules, "--remove")
    assert {path.name for path in into.iterdir()} == {"other.service"}
    assert list((tmp_path / "rules").iterdir()) == []
    for name in FORMER_UNITS:
        (into / name).write_text("[Unit]\n")
    said = ferry.run("setup", "systemd", "--into", str(into), *rules, "--timer")
    assert f"removed {into}/{FORMER_UNITS[1]}" in said.out
    assert not {path.name for path in into.iterdir()} & set(FORMER_UNITS)
    ferry.run("setup", "systemd", "--into", str(into), *rules, "--remove")
    assert "nothing to remove" in ferry.run("setup", "systemd", "--into", str(into), *rules, "--remove").out


def test_shown_without_being_written(ferry: Ferry, tmp_path: Path) -> None:
    assert "# poolferry.service" in ferry.run("setup", "systemd", "--print", "--into", str(tmp_path / "no")).out
    assert not (tmp_path / "no").exists()


def test_the_page_sees_its_program_and_its_directories_and_little_else() -> None:
    texts = units(config="/srv/my etc", state="/srv/100%")
    text = texts["poolferry-web.service"]
    lines = text.splitlines()
    assert 'Environment="POOLFERRY_CONFIG=/srv/my etc"' in lines
    assert "Environment=POOLFERRY_STATE=/srv/100%%" in lines
    assert 'BindReadOnlyPaths="/srv/my etc" /srv/100%%' in lines
    assert "InaccessiblePaths=-/srv/100%%/authentication.key" in lines
    assert 'BindReadOnlyPaths="/opt/p/bin"' in lines
    assert f'BindReadOnlyPaths="{sys.prefix}"' in lines
    assert "/var/lib/poolferry" not in text
    assert "/etc/poolferry" not in text


def test_the_sandbox_of_the_page_is_as_tight_as_promised(tmp_path: Path) -> None:
    unit = tmp_path / "poolferry-web.service"
    unit.write_text(units()["poolferry-web.service"])
    argv = ["systemd-analyze", "security", "--offline=true", "--threshold=15", "--no-pager", str(unit)]
    told = subprocess.run(argv, capture_output=True, text=True)
    assert told.returncode == 0, told.stdout[-300:] + told.stderr


def test_the_units_of_the_page_are_written_and_taken_away(ferry: Ferry, tmp_path: Path) -> None:
    into = tmp_path / "units"
    group = ("--users-into", str(tmp_path / "users"))
    said = ferry.run("setup", "web", "--into", str(into), *group)
    assert "systemctl enable --now poolferry-web.socket" in said.out
    assert {path.name for path in into.iterdir()} == set(WEB_UNITS)
    assert f"ExecStart={Path(sys.executable).with_name('poolferry')} web\n" in (into / WEB_UNITS[0]).read_text()
    assert "g poolferry -" in (tmp_path / "users" / USERS_FILE).read_text()
    assert ferry.run("setup", "web", "--into", str(into), *group, "--remove").code == 0
    assert not [*into.iterdir(), *(tmp_path / "users").iterdir()]


def test_the_unit_of_a_centre_is_written_only_where_one_is_declared(ferry: Ferry, tmp_path: Path) -> None:
    into = ("--into", str(tmp_path / "units"), "--users-into", str(tmp_path / "users"))
    refused = ferry.run("setup", "fleet", *into[:2])
    assert (refused.code, "no centre is declared" in refused.err) == (2, True)
    assert ferry.run("setup", "web", "--fleet", *into).code == 2
    assert not (tmp_path / "units").exists()
    (ferry.config / "poolferry.toml").write_text('[fleet]\ncentre = "postgresql:///poolferry"\n')
    said = ferry.run("setup", "fleet", *into[:2])
    assert "systemctl enable --now poolferry-fleet.service" in said.out
    unit = tmp_path / "units" / FLEET_UNITS[0]
    text = unit.read_text()
    assert f"ExecStart={Path(sys.executable).with_name('poolferry')} fleet watch --every 5m\n" in text
    assert f'Environment="POOLFERRY_CONFIG={ferry.config}"' in text
    assert f'ReadWritePaths="{ferry.state}"' in text
    unit.write_text(text.replace(f'Environment="POOLFERRY_STATE={ferry.state}"\n', "StateDirectory=poolferry\n"))
    argv = ["systemd-analyze", "security", "--offline=true", "--threshold=40", "--no-pager", str(unit)]
    told = subprocess.run(argv, capture_output=True, text=True)
    assert told.returncode == 0, told.stdout[-300:] + told.stderr
    assert ferry.run("setup", "fleet", *into[:2], "--remove").code == 0
    said = ferry.run("setup", "web", "--fleet", *into)
    assert "createuser -g poolferry_reader poolferry-web" in said.out
    assert "try-reload" not in said.out, "there is no daemon to reload"
    (tmp_path / "units" / "poolferry.service").touch()
    assert "systemctl try-reload-or-restart poolferry.service" in ferry.run("setup", "web", "--fleet", *into).out
    page = (tmp_path / "units" / "poolferry-web.service").read_text()
    assert ("\nEnvironment=PGUSER=poolferry-web\n" in page, " web --fleet\n" in page) == (True, True)
    (ferry.config / "poolferry.toml").write_text('[fleet]\ncentre = "postgresql://backups.example.org/poolferry"\n')
    assert "its sandbox has no network" in ferry.run("setup", "web", "--fleet", *into).err


@pytest.mark.parametrize("more", [(), ("--print",)])
def test_the_page_of_a_centre_that_its_sandbox_cannot_reach_is_refused_with_the_address_to_write(
    ferry: Ferry, tmp_path: Path, more: tuple[str, ...]
) -> None:
    into = ("--into", str(tmp_path / "units"), "--users-into", str(tmp_path / "users"))
    (ferry.config / "poolferry.toml").write_text('[fleet]\ncentre = "postgresql://localhost:5433/fleet"\n')
    refused = ferry.run("setup", "web", "--fleet", *into, *more)
    assert (refused.code, 'centre = "postgresql:///fleet?port=5433"' in refused.err) == (2, True), refused
    assert not (tmp_path / "units").exists()


def test_a_user_is_told_what_only_root_may(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def refuse() -> None:
        raise PermissionError(13, "Permission denied", "/etc/systemd/system/poolferry.service")

    for user, told in ((1000, True), (0, False)):
        monkeypatch.setattr(os, "geteuid", lambda user=user: user)
        with report_errors(Terminal()) as end:
            refuse()
        said = capsys.readouterr().err
        assert (end.code, "as root, with sudo" in said) == (1, told), said
        assert "poolferry: /etc/systemd/system/poolferry.service: Permission denied" in said
