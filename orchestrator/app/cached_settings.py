"""Settings of a process that lives long and answers often: the configuration is read again only when a file of it was changed."""

from typing import TYPE_CHECKING

from orchestrator.app.config_cache import config_fingerprint
from orchestrator.app.settings import Settings

if TYPE_CHECKING:
    from orchestrator.config.models import Configuration


class CachedSettings(Settings):
    """Settings that keep what they read; threads may share them."""

    def __init__(self, *, config: str | None = None, state: str | None = None) -> None:
        super().__init__(config=config, state=state)
        self._known: tuple[object, Configuration] | None = None

    def configuration(self) -> "Configuration":
        """Return all jobs and places. Raises: DeclarationError."""
        mark, known = config_fingerprint(self.where.config), self._known
        if known is None or known[0] != mark:
            known = self._known = (mark, super().configuration())
        return known[1]
