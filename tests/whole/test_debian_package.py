"""The Debian package: built, installed in a new minimal Debian, used there, removed and purged; and built twice alike."""

import shutil
from pathlib import Path

import pytest

from tests.whole.minimal_debian import DEB, build, missing, tell_in_debian

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
for folder in /srv/hers /srv/hers/.local/lib/python3.11/site-packages /srv/hers/.local/lib/python3.13/site-packages; do
  mkdir -p $folder
  echo 'import os; os.mkdir("/srv/mark-pth")' > $folder/hers.pth
  echo 'import os; os.mkdir("/srv/mark-customize")' > $folder/sitecustomize.py
done
HOME=/srv/hers PYTHONPATH=/srv/hers poolferry --version
test -z "$(ls -d /srv/mark-*)"
mkdir /srv/files && echo words > /srv/files/a
poolferry init --source /srv/files --target /srv/copies
sed -i 's/^.verify].*/&\\ndigest = "blake3"/' /etc/poolferry/jobs/files.toml
poolferry run files
poolferry verify files
poolferry ls files | grep -q ' a$'
poolferry schedule
apt-get -qq install -y --reinstall /root/poolferry.deb >/dev/null 2>&1
before=$(find /etc/poolferry /var/lib/poolferry /srv -type f -exec sha256sum {} + | sort)
apt-get -qq remove -y poolferry >/dev/null 2>&1
test ! -e /usr/lib/poolferry
test ! -e /usr/bin/poolferry
dpkg --purge poolferry
test "$before" = "$(find /etc/poolferry /var/lib/poolferry /srv -type f -exec sha256sum {} + | sort)"
"""


@pytest.mark.skipif(bool(missing()), reason=missing() or "none")
@pytest.mark.parametrize("suite", ["trixie", pytest.param("bookworm", marks=pytest.mark.long)])
def test_it_is_installed_used_and_removed(tmp_path: Path, suite: str) -> None:
    package, story = build(DEB, tmp_path / "dist"), tmp_path / "story.sh"
    story.write_text(STORY)
    tell_in_debian(suite, story, package, "poolferry.deb")


@pytest.mark.long
@pytest.mark.skipif(not shutil.which("dpkg-deb"), reason="not Debian")
def test_the_same_commit_makes_the_same_bytes(tmp_path: Path) -> None:
    one, other = build(DEB, tmp_path / "one"), build(DEB, tmp_path / "somewhere else", umask=0o077)
    assert one.read_bytes() == other.read_bytes()
