"""orchestrator/engines/zfs/space: say what this chapter is."""
