"""The Debian package: built, installed in a new minimal Debian, used there, removed and purged; and built twice alike.

mmdebstrap makes the chroot, mounts what it needs in a mount namespace of its own, and keeps nothing.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.lab.recipe import sources

CHECKOUT = Path(__file__).resolve().parents[2]
BUILD = CHECKOUT / "systemd/debian/build_package.py"
pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]
STORY = """\
set -eux
unset POOLFERRY_CONFIG POOLFERRY_STATE
apt-get -qq install -y --no-install-recommends /root/poolferry.deb >/root/apt.log 2>&1 || { cat /root/apt.log; exit 1; }
poolferry --version
for file in lib/systemd/system/poolferry.service lib/systemd/system/poolferry-disk@.service lib/udev/rules.d/90-poolferry.rules \\
  share/man/man1/poolferry-restore-run.1.gz share/man/man5/poolferry-jobs.5.gz share/man/man7/poolferry-hooks.7.gz \\
  share/bash-completion/completions/poolferry share/zsh/vendor-completions/_poolferry \\
  share/fish/vendor_completions.d/poolferry.fish share/doc/poolferry/jobs/README.md; do test -s /usr/$file; done
/usr/lib/poolferry/bin/python3 -c 'import apscheduler.schedulers.background, rich.progress, markdown_it, cronsim, xxhash, blake3'
if python3 -c 'import orchestrator' 2>/dev/null; then exit 1; fi
test -x /usr/lib/poolferry/site-packages/orchestrator/hooks_shipped/mail
mkdir /srv/files && echo words > /srv/files/a
poolferry init --source /srv/files --target /srv/copies
sed -i 's/^.verify].*/&\\ndigest = "blake3"/' /etc/poolferry/jobs/home.toml
poolferry run home
poolferry verify home
poolferry ls home | grep -q ' a$'
poolferry schedule
apt-get -qq install -y --reinstall /root/poolferry.deb >/dev/null 2>&1
before=$(find /etc/poolferry /var/lib/poolferry /srv -type f -exec sha256sum {} + | sort)
apt-get -qq remove -y poolferry >/dev/null 2>&1
test ! -e /usr/lib/poolferry
test ! -e /usr/bin/poolferry
dpkg --purge poolferry
test "$before" = "$(find /etc/poolferry /var/lib/poolferry /srv -type f -exec sha256sum {} + | sort)"
"""


def missing() -> str:
    """Return why no package can be installed in a chroot here; empty: it can."""
    if os.geteuid() != 0:
        return "only root makes a chroot"
    programs = [name for name in ("mmdebstrap", "dpkg-deb") if not shutil.which(name)]
    return f"not installed: {', '.join(programs)}" if programs else ""


def build(into: Path, umask: int = 0o022) -> Path:
    """The package, built into a folder."""
    told = subprocess.run(
        [sys.executable, BUILD, into], capture_output=True, text=True, preexec_fn=lambda: (os.umask(umask), None)[1]
    )
    assert told.returncode == 0, told.stderr
    return Path(told.stdout.splitlines()[-1])


@pytest.mark.skipif(bool(missing()), reason=missing() or "none")
@pytest.mark.parametrize("suite", ["trixie", pytest.param("bookworm", marks=pytest.mark.long)])
def test_it_is_installed_used_and_removed(tmp_path: Path, suite: str) -> None:
    package, story = build(tmp_path / "dist"), tmp_path / "story.sh"
    story.write_text(STORY)
    told = subprocess.run(
        [
            "mmdebstrap", "--quiet", "--variant=minbase", "--format=null", "--dpkgopt=force-unsafe-io",
            f"--customize-hook=upload {package} /root/poolferry.deb", f"--customize-hook=upload {story} /root/story.sh",
            '--customize-hook=chroot "$1" sh /root/story.sh', suite, "/dev/null", *sources(suite),
        ],
        capture_output=True, text=True, errors="replace",
    )  # fmt: skip
    assert told.returncode == 0, told.stdout[-3000:] + told.stderr[-3000:]


@pytest.mark.long
@pytest.mark.skipif(not shutil.which("dpkg-deb"), reason="not Debian")
def test_the_same_commit_makes_the_same_bytes(tmp_path: Path) -> None:
    one, other = build(tmp_path / "one"), build(tmp_path / "somewhere else", umask=0o077)
    assert one.read_bytes() == other.read_bytes()
