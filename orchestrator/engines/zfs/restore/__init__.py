"""orchestrator/engines/zfs/restore: say what this chapter is."""
