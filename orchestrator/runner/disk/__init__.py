"""The visit of a removable disk, from its detection to the moment when it is safe to remove."""
