"""The recovery kit, its page, and the surveys for the evacuation of a pool."""
