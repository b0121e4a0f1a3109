"""`python -m orchestrator` is the command `poolferry`.

Changes things.
"""

import sys

from orchestrator.interfaces.cli import main

if __name__ == "__main__":
    sys.exit(main())
