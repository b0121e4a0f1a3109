"""Programs of ours that ask OpenZFS through its own library, where `zfs` would be started once for each dataset; and who asks them."""
