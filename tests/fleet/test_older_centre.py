"""A host that is newer than its centre: it never calls what is missing there, which would be an ERROR in the centre's log at each visit."""

from contextlib import ExitStack
from pathlib import Path

import pytest

from orchestrator.app.fleet_members import leave
from orchestrator.domain.errors import OrchestratorError
from orchestrator.domain.permit import DeclaredLimit
from orchestrator.fleet import schema
from orchestrator.fleet.permits import declare_limit
from orchestrator.fleet.schema import migrations, upgrade_schema
from tests.fleet.askers import PermitHost
from tests.fleet.centres import Centre
from tests.fleet.hosts import FleetHost
from tests.fleet.order_host import fetch_by
from tests.fleet.postgres import PostgresServer


@pytest.mark.parametrize("before", [30, 100, 110])
def test_a_whole_visit_leaves_no_error_in_the_log_of_an_older_centre(
    before: int, postgres: PostgresServer, empty_database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    centre, log = Centre(postgres, empty_database), postgres.folder / "log"
    with centre.administrator() as session:
        with monkeypatch.context() as older:
            older.setattr(schema, "migrations", lambda: {n: each for n, each in migrations().items() if n < before})
            upgrade_schema(session)
        declare_limit(session, DeclaredLimit(name="link", slots=2))
        host = FleetHost(tmp_path / "web-1", centre, "web-1", monkeypatch)
        for name in ("log_min_messages", "log_min_error_statement"):  # as where no superuser made the centre
            session.change(f'ALTER ROLE "{host.identity.role}" RESET {name}')
        known = log.stat().st_size
        host.record()
        assert [host.send().waiting for _ in range(2)] == [0, 0]
        monkeypatch.setattr("orchestrator.config.this_machine.machine_id_hash", lambda: host.machine)
        assert fetch_by(host) == 0
        session.change(
            "INSERT INTO poolferry.orders (host, verb, job, point, span, asked_by, deadline)"
            " SELECT id, 'run', 'photos', '', '', 'ann', now() + interval '1 hour' FROM poolferry.hosts"
        )
        with pytest.raises(OrchestratorError, match="the daemon is not running"):  # once the order is taken
            fetch_by(host)
        with ExitStack() as sessions:
            asker = PermitHost(centre, host.identity, sessions)
            for _ in range(2):
                answer = asker.ask("photos", "link")
                assert answer.granted
                asker.give_back("photos", answer)
        leave(host.settings)
        logged = log.read_bytes()[known:].decode()
    assert [line for line in logged.splitlines() if "ERROR" in line] == []
