"""Preparation and release of removable disks: survey, unlock, mount or import, mark, release."""
