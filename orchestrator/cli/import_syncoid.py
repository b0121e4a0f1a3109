"""`poolferry import-syncoid`: the older spelling of `poolferry import syncoid`."""

import copy

from orchestrator.cli.import_.syncoid import COMMAND as _SYNCOID

COMMAND = copy.copy(_SYNCOID)
COMMAND.name = "import-syncoid"
COMMAND.hidden = True
