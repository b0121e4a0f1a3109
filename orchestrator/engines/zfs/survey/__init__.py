"""The look at both sides: the listings, resume tokens, and the confirmation of a step."""
