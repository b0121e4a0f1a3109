"""The lines before every script of the zfs engine; the scripts themselves lie in `engines/zfs/scripts/`.

One call is one login over ssh. Names are passed as arguments: nothing is ever spliced into a text.
"""

# A login without a terminal, and an ordinary user, often have no sbin in their PATH.
PATH = "PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin"
SUDO = 'zfs() { sudo -n zfs "$@"; }'
