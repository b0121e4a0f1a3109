"""orchestrator/runner/restore: say what this chapter is."""
