"""orchestrator/engines/zfs/survey: say what this chapter is."""
