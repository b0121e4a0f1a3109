"""`make demo`: the nightly job for real, on a real tree of this machine, in a folder that it names at the end.

It copies documentation from /usr/share, is killed in the middle, goes on, proves every file, makes a second restore
point, brings data back, and shows what history remembers.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

CHECKOUT = Path(__file__).parent.parent
ENOUGH = 1500
MOST = 6000
BIG = "album.img"
SLOWLY = '\n[pipe]\nrate-limit = "4M"   # so that there is time to pull the plug\n'


class Demo:
    """The demonstration's folder, and poolferry in it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.source = folder / "library"
        self.environment = os.environ | {
            "PYTHONPATH": str(CHECKOUT),
            "POOLFERRY_CONFIG": str(folder / "etc"),
            "POOLFERRY_STATE": str(folder / "var"),
        }

    def poolferry(self, *words: str) -> None:
        """Runs a command before the reader's eyes. Raises: SystemExit when it fails."""
        self.show(*words)
        if subprocess.run(self.argv(*words), env=self.environment, check=False).returncode:
            raise SystemExit(f"the demonstration stopped: poolferry {' '.join(words)} failed")

    def answer(self, *words: str) -> dict[str, Any]:
        """Return what a command says as JSON."""
        done = subprocess.run(
            self.argv(*words, "--json"),
            env=self.environment,
            check=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        value: dict[str, Any] = json.loads(done.stdout)
        return value

    def show(self, *words: str) -> None:
        """Prints the command as a person would type it."""
        print(f"\n$ poolferry {' '.join(words)}", flush=True)

    def argv(self, *words: str) -> list[str]:
        """The command of this checkout."""
        return [sys.executable, "-m", "orchestrator", *words]


def main() -> None:
    """The whole story."""
    demo = Demo(Path(tempfile.mkdtemp(prefix="poolferry-demo-")))
    say("A source: documentation of this machine")
    files, size = gather(demo.source)
    print(f"{demo.source}: {files} files, {size / 1e6:.0f} MB")
    say("A configuration: one place, one job")
    demo.poolferry("init", "--source", str(demo.source), "--target", str(demo.folder / "backup"))
    job = demo.folder / "etc/jobs/library.toml"
    demo.poolferry("check", "--system")
    cut(demo, job)
    say("The second run goes on from there")
    demo.poolferry("run", "library")
    if not demo.answer("show", "2")["resumed"]:
        raise SystemExit("the second run did not resume")
    say("Every file is read again, past the cache, and compared with its digest")
    demo.poolferry("verify", "library")
    change(demo)
    bring_back(demo)
    say("What history remembers")
    for words in (("history",), ("points",), ("status",)):
        demo.poolferry(*words)
    farewell(demo)


def say(text: str) -> None:
    """A heading."""
    print(f"\n=== {text}", flush=True)


def gather(source: Path) -> tuple[int, int]:
    """Copies real files of this machine: documentation, and more of /usr/share where that is little."""
    files = size = 0
    for origin in (Path("/usr/share/doc"), Path("/usr/share/perl"), Path("/usr/share/zoneinfo"), Path("/usr/share")):
        for folder, folders, names in os.walk(origin):
            folders.sort()
            for name in sorted(names):
                path = Path(folder, name)
                target = source / path.relative_to("/usr/share")
                if files >= MOST or target.exists() or path.is_symlink() or not os.access(path, os.R_OK):
                    continue
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(path, target)
                files, size = files + 1, size + target.stat().st_size
        if files >= ENOUGH:
            break
    big = source / BIG
    big.write_bytes(os.urandom(24 << 20))
    return files + 1, size + big.stat().st_size


def cut(demo: Demo, job: Path) -> None:
    """Begins the copy slowly and kills poolferry with SIGKILL when a part is there."""
    say("The first run, and the plug is pulled in the middle (kill -9)")
    declared = job.read_text()
    job.write_text(declared.replace("\n[pipe]", SLOWLY, 1))
    demo.show("run", "library")
    with subprocess.Popen(demo.argv("run", "library"), env=demo.environment, start_new_session=True) as run:
        work = demo.folder / "backup/.poolferry/work"
        while run.poll() is None and arrived(work) < 6_000_000:
            time.sleep(0.02)
        if run.poll() is not None:
            raise SystemExit("the run was over before the plug could be pulled")
        run.send_signal(signal.SIGKILL)
    job.write_text(declared)
    published = (demo.folder / "backup/latest").exists()
    seen = "a half restore point is to be seen" if published else "no half restore point is to be seen"
    print(f"killed; {arrived(work) / 1e6:.0f} MB are in the hidden work tree, and {seen}")


def arrived(work: Path) -> int:
    """Bytes in a tree that somebody else is writing."""
    total = 0
    for folder, _, names in os.walk(work):
        for name in names:
            try:
                total += os.lstat(os.path.join(folder, name)).st_size
            except FileNotFoundError:
                continue
    return total


def change(demo: Demo) -> None:
    """A new file, a changed one and a removed one make a second point."""
    say("A change makes a second restore point; unchanged files cost no room")
    texts = sorted(path for path in demo.source.rglob("*") if path.is_file() and path.name != BIG)
    (demo.source / "diary.txt").write_text("the first page\n")
    texts[0].write_text("the second edition\n")
    texts[-1].unlink()
    demo.poolferry("run", "library")
    say("And when nothing has changed, nothing is done")
    demo.poolferry("run", "library")


def bring_back(demo: Demo) -> None:
    """A disaster, and a restore that is compared with the source as it was."""
    say("A disaster, and the way back")
    lost = demo.source.rename(demo.folder / "library-as-it-was")
    demo.poolferry("restore", "plan", "library", "--to", str(demo.source))
    demo.poolferry("restore", "run", "library", "--to", str(demo.source))
    difference = subprocess.run(
        ["rsync", "-naiHAX", "--delete", "--checksum", f"{lost}/", f"{demo.source}/"],
        check=True,
        stdout=subprocess.PIPE,
    ).stdout
    if difference:
        raise SystemExit(f"what came back differs:\n{difference.decode(errors='replace')}")
    print("rsync --checksum finds no difference between what was lost and what came back")


def farewell(demo: Demo) -> None:
    """Print where to look next."""
    say("Where to look next")
    print(f"""everything lies in {demo.folder} (remove it when you have seen enough):
  etc/                      the configuration; jobs/README.md tells every key
  backup/latest/            the newest restore point, plain files
  backup/points/            all of them, each with its manifest (zless …manifest.gz)
to go on by hand:
  export POOLFERRY_CONFIG={demo.folder}/etc POOLFERRY_STATE={demo.folder}/var
  {CHECKOUT}/.venv/bin/poolferry plan library""")


if __name__ == "__main__":
    main()
