"""The engines that are shipped, as the configuration sees them."""

from orchestrator.compose import EngineSections
from orchestrator.config.models import EngineSection
from orchestrator.engines.rsync.options import RsyncOptions, mistakes

RSYNC = {"rsync": EngineSection(name="rsync", options=RsyncOptions, check=mistakes)}
SHIPPED = EngineSections()
