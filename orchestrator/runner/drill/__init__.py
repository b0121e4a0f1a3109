"""orchestrator/runner/drill: say what this chapter is."""
