#!/usr/bin/env python3
"""Build the Debian package: `make deb` calls this. One .deb for Debian 12 and 13; the same commit makes the same bytes.

It lies in /usr/lib/poolferry as a Python environment of its own, on Debian's python3: `sys.executable` is that environment's, so
each process of ours finds the same modules, and no other program sees them. Debian's own packages are used where both releases
have one that is new enough (control names them); what Debian lacks, or has too old in one of them, is carried along in the version
and with the checksum that requirements.lock has.
"""

import gzip
import hashlib
import os
import re
import shutil
import stat
import subprocess
import sys
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path

HERE = Path(__file__).resolve().parent
CHECKOUT = HERE.parents[1]
# Not in Debian: blake3, cronsim (12). Too old: apscheduler, markdown-it-py, mdurl, rich (12), xxhash (both).
CARRIED = ("apscheduler", "blake3", "cronsim", "markdown-it-py", "mdurl", "rich", "xxhash")
PYTHONS = ("3.11", "3.13")  # of Debian 12 and 13
MACHINES = {"amd64": "x86_64", "arm64": "aarch64"}
PRIVATE = "usr/lib/poolferry"
# -I: root may be started with a user's HOME, below which Python looks for modules, and with her PYTHONPATH.
COMMAND = f"""\
#!/{PRIVATE}/bin/python3 -I
from orchestrator.__main__ import program

program()
"""
ENVIRONMENT = "home = /usr/bin\ninclude-system-site-packages = true\n"


def main() -> None:
    """Build the package into the folder that the command line names, and print its path."""
    out = Path(sys.argv[1]).resolve()
    work = out / "deb"
    shutil.rmtree(work, ignore_errors=True)
    root, wheels = work / "root", work / "wheels"
    root.mkdir(parents=True)
    environment = {**os.environ, "SOURCE_DATE_EPOCH": commit_time(), "LC_ALL": "C.UTF-8"}
    machine = run("dpkg", "--print-architecture").strip()
    build_wheel(wheels, environment)
    version = next(wheels.glob("poolferry-*.whl")).name.split("-")[1]
    fetch_carried(wheels, MACHINES[machine], CARRIED, PYTHONS)
    add_modules(root, wheels)
    add_command(root)
    add_pages(root)
    add_units(root)
    add_control(root, version, machine)
    settle_modes(root)
    package = out / f"poolferry_{version}_{machine}.deb"
    run("dpkg-deb", "--root-owner-group", "-Zxz", "--build", str(root), str(package), environment=environment)
    shutil.rmtree(work)
    sys.stdout.write(f"{package}\n")


def run(*argv: str, environment: dict[str, str] | None = None) -> str:
    """Run a program and return its output; it ends the build when it fails."""
    return subprocess.run(  # noqa: S603 - no shell; words of our own
        argv, check=True, stdout=subprocess.PIPE, text=True, env=environment, cwd=CHECKOUT
    ).stdout


def commit_time() -> str:
    """Return the time of the newest commit; each file gets this time at most."""
    return os.environ.get("SOURCE_DATE_EPOCH") or run("git", "log", "-1", "--format=%ct").strip()


def build_wheel(wheels: Path, environment: dict[str, str]) -> None:
    """Build our own modules, hooks, job files and units, as pip would install them."""
    run(
        sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation", "--wheel-dir", str(wheels),
        ".", environment=environment,
    )  # fmt: skip


def fetch_carried(wheels: Path, machine: str, names: Sequence[str], pythons: Sequence[str]) -> None:
    """Download what is carried along, for each Python, with the versions and checksums of requirements.lock."""
    lock = (CHECKOUT / "requirements.lock").read_text()
    chosen = wheels / "carried.lock"
    entries = re.findall(r"^\S+==.*(?:\n    .*)*", lock, re.MULTILINE)
    chosen.write_text("\n".join(each for each in entries if each.partition("==")[0] in names) + "\n")
    for python in pythons:
        run(
            sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps", "--require-hashes",
            "--only-binary=:all:", "--implementation=cp", f"--python-version={python}",
            *(f"--platform=manylinux{glibc}_{machine}" for glibc in ("2014", "_2_17", "_2_28")),
            "--dest", str(wheels / python), "-r", str(chosen),
        )  # fmt: skip


def add_modules(root: Path, wheels: Path) -> None:
    """Unpack all wheels, and make the environment that the Python of either release takes for its own."""
    private = root / PRIVATE
    for wheel in sorted(wheels.rglob("*.whl")):
        unpack(wheel, private / "site-packages")
    for builder in ("debian", "zipapp"):
        shutil.rmtree(private / "site-packages/orchestrator/systemd_shipped" / builder)
    (private / "pyvenv.cfg").write_text(ENVIRONMENT)
    (private / "bin").mkdir()
    (private / "bin/python3").symlink_to("/usr/bin/python3")
    for python in PYTHONS:
        folder = private / f"lib/python{python}"
        folder.mkdir(parents=True)
        (folder / "site-packages").symlink_to("../../site-packages")


def unpack(wheel: Path, into: Path) -> None:
    """Unpack a wheel with its modes, and without the list of its files, which nobody needs."""
    with zipfile.ZipFile(wheel) as archive:
        for entry in archive.infolist():
            path = Path(archive.extract(entry, into))
            if path.name == "RECORD":
                path.unlink()
            elif path.is_file() and (entry.external_attr >> 16) & 0o111:
                path.chmod(0o755)


def add_command(root: Path) -> None:
    """Write /usr/bin/poolferry."""
    command = root / "usr/bin/poolferry"
    command.parent.mkdir(parents=True)
    command.write_text(COMMAND)
    command.chmod(0o755)


def add_pages(root: Path) -> None:
    """Write manual pages, completions and documentation, from the same texts as in the checkout."""
    ours = (sys.executable, "-m", "orchestrator")
    run(*ours, "setup", "man", "--into", str(root / "usr/share/man"))
    completions = {
        "bash": "usr/share/bash-completion/completions/poolferry",
        "zsh": "usr/share/zsh/vendor-completions/_poolferry",
        "fish": "usr/share/fish/vendor_completions.d/poolferry.fish",
    }
    for shell, path in completions.items():
        (root / path).parent.mkdir(parents=True)
        (root / path).write_text(run(*ours, "completion", shell))
    documents = root / "usr/share/doc/poolferry"
    for folder in ("jobs", "hooks", "systemd"):
        (documents / folder).mkdir(parents=True)
        for page in sorted((CHECKOUT / folder).glob("*.md")):
            shutil.copy(page, documents / folder)
    shutil.copytree(CHECKOUT / "jobs/pictures", documents / "jobs/pictures")
    shutil.copytree(CHECKOUT / "systemd/monitoring", documents / "systemd/monitoring")
    for example in sorted((CHECKOUT / "jobs").glob("*.toml")):
        shutil.copy(example, documents / "jobs")
    for name in ("README.md", "SECURITY.md"):
        shutil.copy(CHECKOUT / name, documents)
    shutil.copy(HERE / "copyright", documents)
    shutil.copy(CHECKOUT / "CHANGELOG.md", documents / "changelog")
    for page in [*sorted((root / "usr/share/man").rglob("*.[157]")), documents / "changelog"]:
        page.with_name(f"{page.name}.gz").write_bytes(gzip.compress(page.read_bytes(), mtime=0))
        page.unlink()


def add_units(root: Path) -> None:
    """Copy the units of systemd, which call /usr/bin/poolferry already, and udev's rule."""
    for pattern, folder in (
        ("*.service", "systemd/system"),
        ("*.socket", "systemd/system"),
        ("*.timer", "systemd/system"),
        ("*.rules", "udev/rules.d"),
        ("*.conf", "sysusers.d"),
    ):
        into = root / "usr/lib" / folder
        into.mkdir(parents=True, exist_ok=True)
        for file in sorted((CHECKOUT / "systemd").glob(pattern)):
            shutil.copy(file, into)


def files_of(root: Path) -> Iterator[Path]:
    """Yield all regular files of the package, sorted."""
    yield from (path for path in sorted(root.rglob("*")) if path.is_file() and not path.is_symlink())


def add_control(root: Path, version: str, machine: str) -> None:
    """Write what dpkg reads: the control file, checksums, and the scripts around installing and removing."""
    files = list(files_of(root))
    size = sum(-(-path.stat().st_size // 1024) for path in files)
    sums = [f"{hashlib.md5(path.read_bytes()).hexdigest()}  {path.relative_to(root)}\n" for path in files]  # noqa: S324
    control = root / "DEBIAN"
    control.mkdir()
    text = (HERE / "control").read_text()
    (control / "control").write_text(text.format(version=version, architecture=machine, size=size))
    (control / "md5sums").write_text("".join(sums))
    for script in ("postinst", "prerm", "postrm"):
        shutil.copy(HERE / script, control)
        (control / script).chmod(0o755)


def settle_modes(root: Path) -> None:
    """Give each file and folder the mode that a package has, whatever the builder's umask is."""
    for path in [root, *root.rglob("*")]:
        if not path.is_symlink():
            executable = path.is_dir() or path.stat().st_mode & stat.S_IXUSR
            path.chmod(0o755 if executable else 0o644)


if __name__ == "__main__":
    main()
