#!/usr/bin/env python3
"""Build dist/poolferry.pyz: `make zipapp` calls this. One executable file for machines where nothing may be installed.

It carries all modules for Python 3.11 to 3.13 of the machine that it is built on, in the versions and with the checksums of
requirements.lock; unpack.py says what its start does. The same commit makes the same bytes.
"""

import hashlib
import os
import shutil
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "debian"))
from build_package import MACHINES, build_wheel, commit_time, fetch_carried, run, settle_modes, unpack  # noqa: E402

# Beside what the .deb carries: what Debian has, and what status pages, metrics and the importers of YAML need.
CARRIED = (
    "anyio", "apscheduler", "blake3", "click", "cronsim", "h11", "idna", "jinja2", "markdown-it-py", "markupsafe", "mdurl",
    "prometheus-client", "pygments", "pyyaml", "rich", "starlette", "typing-extensions", "tzlocal", "uvicorn", "xxhash",
)  # fmt: skip
PYTHONS = ("3.11", "3.12", "3.13")
COMMAND = "import sys\n\nsys.argv.pop(0)\nfrom orchestrator.__main__ import program\n\nprogram()\n"
FILES = "poolferry.files"


def main() -> None:
    """Build the archive into the folder that the command line names, and print its path."""
    out = Path(sys.argv[1]).resolve()
    work = out / "zipapp"
    shutil.rmtree(work, ignore_errors=True)
    root, wheels = work / "root", work / "wheels"
    root.mkdir(parents=True)
    environment = {**os.environ, "SOURCE_DATE_EPOCH": commit_time(), "LC_ALL": "C.UTF-8"}
    build_wheel(wheels, environment)
    fetch_carried(wheels, MACHINES[run("dpkg", "--print-architecture").strip()], CARRIED, PYTHONS)
    for wheel in sorted(wheels.rglob("*.whl")):
        unpack(wheel, root / "site-packages")
    for builder in ("debian", "zipapp"):
        shutil.rmtree(root / "site-packages/orchestrator/systemd_shipped" / builder)
    (root / "bin").mkdir()
    (root / "bin/poolferry").write_text(COMMAND)
    settle_modes(root)
    archive = out / "poolferry.pyz"
    write_archive(root, archive)
    shutil.rmtree(work)
    sys.stdout.write(f"{archive}\n")


def write_archive(root: Path, archive: Path) -> None:
    """Write the executable archive: its start, the list of all files, and the files."""
    lines = [
        f"{hashlib.sha256(path.read_bytes()).hexdigest()} {path.stat().st_mode & 0o777:o} {path.relative_to(root)}\n"
        for path in files_of(root)
    ]
    with open(archive, "wb") as file:
        file.write(b"#!/usr/bin/python3 -I\n")  # a user's PATH and PYTHONPATH say nothing
        with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as held:
            add(held, "__main__.py", (HERE / "unpack.py").read_bytes())
            add(held, FILES, "".join(lines).encode())
            for path in files_of(root):
                add(held, str(path.relative_to(root)), path.read_bytes())
    archive.chmod(0o755)


def files_of(root: Path) -> Iterator[Path]:
    """Yield all files, sorted."""
    yield from (path for path in sorted(root.rglob("*")) if path.is_file())


def add(held: zipfile.ZipFile, name: str, content: bytes) -> None:
    """Add one file, with the same time in each build."""
    entry = zipfile.ZipInfo(name, date_time=(1980, 1, 1, 0, 0, 0))
    entry.compress_type = zipfile.ZIP_DEFLATED
    entry.external_attr = 0o644 << 16
    held.writestr(entry, content)


if __name__ == "__main__":
    main()
