"""orchestrator/engines/zfs/errors: say what this chapter is."""
