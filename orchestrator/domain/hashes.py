"""Hash functions and a comparison that need no OpenSSL: loading it takes a good part of a run with nothing to do.

For much data `hashlib`'s sha256 is five times as quick. Source of the modules' names: Modules/Setup of CPython.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import hashlib
    from hashlib import blake2b, sha256
    from hmac import compare_digest
else:
    try:
        from _blake2 import blake2b
        from _operator import _compare_digest as compare_digest

        try:
            from _sha2 import sha256  # since Python 3.12
        except ImportError:
            from _sha256 import sha256
    except ImportError:  # another interpreter
        from hashlib import blake2b, sha256
        from hmac import compare_digest

__all__ = ["blake2b", "compare_digest", "sha256", "sha256_for"]


class _HashedBytes:
    """A count of what the program has hashed. From `pays` bytes on, loading OpenSSL costs less than it saves."""

    total = 0
    pays = 2 << 20


def sha256_for(size: int) -> "hashlib._Hash":
    """Return a SHA-256 to be fed with so many bytes: OpenSSL's once a program has hashed so much that loading that pays."""
    _HashedBytes.total += size
    if _HashedBytes.total < _HashedBytes.pays:
        return sha256()
    import hashlib

    return hashlib.sha256()
