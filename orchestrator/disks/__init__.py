"""Makes removable disks usable, and lets go of them: look, unlock, mount or import, mark, release."""
