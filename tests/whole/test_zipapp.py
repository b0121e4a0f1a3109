"""poolferry.pyz: built, and used in a minimal Debian whose /usr cannot be written and that has python3 and rsync alone."""

from pathlib import Path

import pytest

from tests.whole.minimal_debian import ZIPAPP, build, missing, tell_in_debian

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]
STORY = """\
set -eux
unset POOLFERRY_CONFIG POOLFERRY_STATE
mount --bind /usr /usr
trap 'umount -l /usr' EXIT
mount -o remount,ro,bind /usr
cd /srv
mkdir files && echo words > files/a
export HOME=/srv/stranger XDG_CACHE_HOME=/srv/stranger
mkdir -m 777 /srv/stranger
/root/poolferry.pyz --version
test "$(stat -c %a /var/lib/poolferry-program)" = 700
test -z "$(ls -A /srv/stranger)"
echo 'import os; os.mkdir("/srv/mark")' > /srv/stranger/sitecustomize.py
PYTHONPATH=/srv/stranger /root/poolferry.pyz --version
test ! -e /srv/mark
/root/poolferry.pyz init --source /srv/files --target /srv/copies
sed -i 's/^.verify].*/&\\ndigest = "blake3"/' /etc/poolferry/jobs/files.toml
/root/poolferry.pyz check --system
/root/poolferry.pyz run files
/root/poolferry.pyz verify files
/root/poolferry.pyz schedule
/root/poolferry.pyz setup systemd --into /srv/units
grep -q 'ExecStart=/root/poolferry.pyz daemon' /srv/units/poolferry.service
test "$(ls /var/lib/poolferry-program | wc -l)" = 1
program=$(echo /var/lib/poolferry-program/*)
chmod 755 "$program"
if /root/poolferry.pyz --version; then exit 1; fi
rm -r "$program"
cd /var/lib/poolferry-program
mkdir -m 700 unused held fresh .unpacking-killed
touch -d '40 days ago' unused/used held/used .unpacking-killed
touch fresh/used
exec 9< held/used
flock -s 9
/root/poolferry.pyz --version
test "$(ls -A | grep -v "${program##*/}" | tr '\n' ' ')" = 'fresh held '
exec 9<&-
/root/poolferry.pyz daemon & daemon=$!
while flock -n "$program/used" true; do sleep 0.1; done
kill "$daemon"
wait "$daemon" || true
"""


@pytest.mark.skipif(bool(missing()), reason=missing() or "none")
@pytest.mark.parametrize("suite", ["trixie", pytest.param("bookworm", marks=pytest.mark.long)])
def test_one_file_is_all_that_a_machine_needs(tmp_path: Path, suite: str) -> None:
    built, story = build(ZIPAPP, tmp_path / "dist"), tmp_path / "story.sh"
    story.write_text(STORY)
    tell_in_debian(suite, story, built, "poolferry.pyz", "--include=python3,rsync")
