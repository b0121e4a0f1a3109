"""orchestrator/engines/zfs/recovery: say what this chapter is."""
