"""orchestrator/engines/zfs/drill: say what this chapter is."""
