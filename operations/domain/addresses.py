"""Which addresses notices may go to: public ones, and those that the configuration allows.

The networks are written out (IANA, special-purpose address registries), because what Python's
`ipaddress` takes for global differs between its versions.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from ipaddress import (
    IPv4Address,
    IPv4Network,
    IPv6Address,
    IPv6Network,
    ip_address,
    ip_network,
)
from urllib.parse import urlsplit

from operations.domain.sentences import Outside, Refusal, say

Network = IPv4Network | IPv6Network

MAX_LENGTH = 500
_CLOSED_V4 = tuple(
    IPv4Network(text)
    for text in (
        "0.0.0.0/8",
        "10.0.0.0/8",
        "100.64.0.0/10",
        "127.0.0.0/8",
        "169.254.0.0/16",
        "172.16.0.0/12",
        "192.0.0.0/24",
        "192.0.2.0/24",
        "192.88.99.0/24",
        "192.168.0.0/16",
        "198.18.0.0/15",
        "198.51.100.0/24",
        "203.0.113.0/24",
        "224.0.0.0/4",
        "240.0.0.0/4",
    )
)
# Of version 6 only what is handed out as global unicast, without tunnels and documentation.
_OPEN_V6 = IPv6Network("2000::/3")
_CLOSED_V6 = tuple(
    IPv6Network(text) for text in ("2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20")
)
_NAT64 = IPv6Network("64:ff9b::/96")


class AddressRefused(Refusal):
    """Nothing may be sent to this address; the sentence says why, of "the address"."""


@dataclass(frozen=True, kw_only=True)
class Target:
    """Where an address leads: what its text says, before any name is looked up."""

    scheme: str
    host: str
    port: int
    path: str

    @property
    def host_header(self) -> str:
        """As a client writes it: the port only where it is not the scheme's own."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        usual = {"https": 443, "http": 80}[self.scheme]
        return host if self.port == usual else f"{host}:{self.port}"


def parse(address: str) -> Target:
    """Read an address. Raises AddressRefused."""
    if len(address) > MAX_LENGTH:
        raise AddressRefused(say("must not be longer than {count} characters.", count=MAX_LENGTH))
    if not address.isascii() or any(ord(char) <= 32 or char in '\x7f\\"<>' for char in address):
        raise AddressRefused(
            say("must be an address in plain ASCII, with everything else escaped.")
        )
    try:
        parts = urlsplit(address)
        port = parts.port
        host = parts.hostname or ""
    except ValueError:
        raise AddressRefused(say("is not an address.")) from None
    if parts.scheme not in ("https", "http") or not host:
        raise AddressRefused(say("must be an https address."))
    if parts.username is not None or parts.password is not None:
        raise AddressRefused(say("must not hold a user name or a password."))
    if parts.fragment or "#" in address:
        raise AddressRefused(say("must not have a fragment (#…)."))
    if "%" in host or port == 0:
        raise AddressRefused(say("is not an address."))
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    usual = 443 if parts.scheme == "https" else 80
    return Target(scheme=parts.scheme, host=host, port=port or usual, path=path)


def check(target: Target, found: Sequence[str], allowed: Iterable[Network]) -> None:
    """Refuse unless all that the name resolved to may be reached this way.

    Plain http only inside the networks that are allowed by name. Raises AddressRefused.
    """
    if not found:
        raise AddressRefused(
            say("{host} does not resolve to any address.", host=Outside(target.host))
        )
    networks = tuple(allowed)
    for text in found:
        if _is_in(text, networks):
            continue
        if not is_public(text):
            raise AddressRefused(
                say(
                    "{host} resolves to {address}, which is not a public address. "
                    "RECONCILE_NOTICES_ALLOW_NETWORKS allows networks of your own.",
                    host=Outside(target.host), address=text,
                )
            )  # fmt: skip
        if target.scheme != "https":
            raise AddressRefused(say("must be an https address."))


def is_public(text: str) -> bool:
    """Whether this IP address is anybody's on the internet. What embeds another is that one."""
    ip = _meant(text)
    if isinstance(ip, IPv4Address):
        return not any(ip in network for network in _CLOSED_V4)
    return ip in _OPEN_V6 and not any(ip in network for network in _CLOSED_V6)


def network(text: str) -> Network:
    """Read a network such as `10.0.0.0/8`. Raises ValueError."""
    return ip_network(text)


def _is_in(text: str, networks: Iterable[Network]) -> bool:
    ip = _meant(text)
    return any(ip.version == network.version and ip in network for network in networks)


def _meant(text: str) -> IPv4Address | IPv6Address:
    """The address that packets end up at: without zone, mapping and NAT64 prefix."""
    ip = ip_address(text.partition("%")[0])
    if isinstance(ip, IPv6Address):
        if ip.ipv4_mapped is not None:
            return ip.ipv4_mapped
        if ip in _NAT64:
            return IPv4Address(int(ip) & 0xFFFF_FFFF)
    return ip
