"""Recognition of public and private network addresses."""

# Source: RFC 1918, RFC 1122 (loopback), RFC 3927 and 4291 (link-local), RFC 4193 (unique local).
_OWN = (
    "10.0.0.0/8",
    "172.16.0.0/12",
    "192.168.0.0/16",
    "127.0.0.0/8",
    "169.254.0.0/16",
    "::1/128",
    "fe80::/10",
    "fc00::/7",
)


def is_public(address: str) -> bool | None:
    """Return True when an address is public; None for what is no address, such as a name."""
    import ipaddress  # few jobs ask

    try:
        told = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return None
    told = getattr(told, "ipv4_mapped", None) or told
    return not any(told in ipaddress.ip_network(network) for network in _OWN if (":" in network) == (told.version == 6))
