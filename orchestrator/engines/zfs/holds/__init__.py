"""orchestrator/engines/zfs/holds: say what this chapter is."""
