"""orchestrator/runner/verify: say what this chapter is."""
