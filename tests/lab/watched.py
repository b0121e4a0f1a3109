"""A folder for running machines, with a watcher that ends them when whoever started them is gone."""

import subprocess
import tempfile
from pathlib import Path

# It lives as long as our end of its stdin is open; a killed test run closes it. Why not PR_SET_PDEATHSIG: it follows the
# thread that started the child, and machines are started from short-lived ones.
_WATCHER = """
trap "" INT TERM HUP
read -r nothing
for file in "$1"/*/*/pid; do
  [ -e "$file" ] && pid=$(cat "$file") && grep -q -a -F "$1" "/proc/$pid/cmdline" && kill -9 "$pid"
done
rm -rf "$1"
"""


class WatchedFolder:
    """A new folder under /var/tmp: short enough for unix sockets, and a disk rather than memory. Each machine has a `pid`."""

    def __init__(self) -> None:
        self.path = Path(tempfile.mkdtemp(prefix="poolferry-lab-", dir="/var/tmp"))
        self._watcher = subprocess.Popen(
            ["/bin/sh", "-c", _WATCHER, "lab-watcher", str(self.path)], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL, start_new_session=True,
        )  # fmt: skip

    def close(self) -> None:
        """Ends what is left, and removes the folder."""
        self._watcher.communicate()
