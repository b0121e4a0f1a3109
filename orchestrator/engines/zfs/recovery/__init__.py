"""The recovery kit, its page, and what leads to the evacuation of a pool."""
