"""orchestrator/runner/disk: say what this chapter is."""
