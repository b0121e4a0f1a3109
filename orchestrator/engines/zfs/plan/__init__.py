"""orchestrator/engines/zfs/plan: say what this chapter is."""
