"""orchestrator/engines/zfs/commands: say what this chapter is."""
