"""orchestrator/views: say what this chapter is."""
