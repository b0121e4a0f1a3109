"""orchestrator/engines/zfs/verify: say what this chapter is."""
