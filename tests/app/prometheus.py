"""The real Prometheus, promtool and node_exporter, as Debian has them, on ports of loopback."""

import contextlib
import json
import socket
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

PROMTOOL = "/usr/bin/promtool"
_PROMETHEUS = "/usr/bin/prometheus"
_NODE_EXPORTER = "/usr/bin/prometheus-node-exporter"
_CONFIG = """
global: {{scrape_interval: 1s, evaluation_interval: 1s}}
rule_files: ["{rules}"]
scrape_configs:
  - job_name: node
    static_configs: [{{targets: [{targets}]}}]
"""


class Prometheus:
    """A running Prometheus that scrapes each second. Its answers: the results of its HTTP interface."""

    def __init__(self, port: int) -> None:
        self._base = f"http://127.0.0.1:{port}/api/v1"

    def ask(self, path: str, **parameters: str) -> Any:
        """Return the data of one answer. Raises: AssertionError with Prometheus's own words when it has none."""
        try:
            with urllib.request.urlopen(f"{self._base}/{path}?{urllib.parse.urlencode(parameters)}", timeout=10) as end:  # noqa: S310, our own server
                return json.load(end)["data"]
        except urllib.error.HTTPError as error:
            raise AssertionError(f"{parameters}: {error.read().decode()}") from error

    def series(self, expression: str) -> list[dict[str, str]]:
        """Return the labels of each series that the expression has now."""
        return [each["metric"] for each in self.ask("query", query=expression)["result"]]

    def wait_for(self, expression: str, number: int) -> list[dict[str, str]]:
        """Return the labels as soon as the expression has that many series."""
        end, found = time.monotonic() + 60, list[dict[str, str]]()
        while time.monotonic() < end:
            with contextlib.suppress(OSError, AssertionError):  # it is still starting
                found = self.series(expression)
                if len(found) == number:
                    return found
            time.sleep(0.2)
        raise AssertionError(f"{expression}: never {number} series, last {found}")


@contextlib.contextmanager
def prometheus(here: Path, textfiles: list[Path], rules: Path) -> Iterator[Prometheus]:
    """Run one node_exporter for each folder of text files, and a Prometheus that scrapes them all as the job "node"."""
    ports = [_free_port() for _ in (*textfiles, here)]
    exporters = [
        [
            _NODE_EXPORTER,
            "--collector.disable-defaults",
            "--collector.textfile",
            f"--collector.textfile.directory={folder}",
            f"--web.listen-address=127.0.0.1:{port}",
        ]
        for folder, port in zip(textfiles, ports, strict=False)
    ]
    config = here / "prometheus.yml"
    config.write_text(_CONFIG.format(rules=rules, targets=", ".join(f'"127.0.0.1:{port}"' for port in ports[:-1])))
    server = [
        _PROMETHEUS,
        f"--config.file={config}",
        f"--storage.tsdb.path={here}/data",
        f"--web.listen-address=127.0.0.1:{ports[-1]}",
    ]
    with contextlib.ExitStack() as all_ended:
        for argv in (*exporters, server):
            log = all_ended.enter_context((here / "log").open("ab"))
            process = subprocess.Popen(argv, stdout=log, stderr=log)
            all_ended.callback(process.wait, 30)
            all_ended.callback(process.terminate)
        yield Prometheus(ports[-1])


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as line:
        return int(line.getsockname()[1])
