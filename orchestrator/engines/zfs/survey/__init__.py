"""The survey of both sides: listings, resume tokens, and the confirmation of a step."""
