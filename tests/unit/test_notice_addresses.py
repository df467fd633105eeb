"""Which addresses a notice may go to."""

from ipaddress import ip_network

import pytest

from operations.domain.addresses import AddressRefused, check, is_public, parse
from operations.domain.notices import NoticePolicy
from operations.services.posting import checked


@pytest.mark.parametrize(
    "ip",
    ["8.8.8.8", "93.184.216.34", "172.15.255.255", "2606:4700::1111", "64:ff9b::8.8.8.8"],
)
def test_public_addresses_are_public(ip: str) -> None:
    assert is_public(ip)


@pytest.mark.parametrize(
    "ip",
    [
        "0.0.0.0",
        "10.1.2.3",
        "100.64.0.1",
        "127.0.0.1",
        "169.254.169.254",
        "172.31.255.255",
        "192.0.0.170",
        "192.168.1.1",
        "198.18.0.1",
        "203.0.113.5",
        "224.0.0.1",
        "255.255.255.255",
        "::",
        "::1",
        "::127.0.0.1",
        "::ffff:127.0.0.1",
        "::ffff:8.8.8.8%1",
        "64:ff9b::10.0.0.1",
        "64:ff9b:1::1",
        "2001::1",
        "2001:db8::1",
        "2002:7f00:1::",
        "fc00::1",
        "fe80::1%eth0",
        "ff02::1",
    ],
)
def test_everything_else_is_not(ip: str) -> None:
    assert is_public(ip) is (ip == "::ffff:8.8.8.8%1")


# What the system's resolver makes of these is what counts, however they are written.
@pytest.mark.parametrize(
    "address",
    [
        "https://127.0.0.1/hook",
        "https://localhost/hook",
        "https://[::1]/hook",
        "https://[::ffff:10.0.0.1]/hook",
        "https://169.254.169.254/latest/meta-data",
        "https://0x7f.1/",
        "https://2130706433/",
        "https://[fe80::1]/",
        "https://0.0.0.0/",
        "http://127.0.0.1:9/hook",
    ],
)
def test_an_address_that_leads_inside_is_refused(address: str) -> None:
    with pytest.raises(AddressRefused, match="not a public address"):
        checked(address, policy=NoticePolicy())


@pytest.mark.parametrize(
    "address",
    [
        "ftp://example.com/",
        "example.com/hook",
        "https://",
        "https://user:password@example.com/",
        "https://example.com/#part",
        "https://example.com/#",
        "https://example.com:0/",
        "https://example.com:99999/",
        "https://exa mple.com/",
        "https://example.com/\r\nHost: other",
        "https://exämple.com/",
        "https://[::1",
        "https://[fe80::1%25eth0]/",
        "https://example.com/" + "a" * 500,
    ],
)
def test_what_is_no_plain_address_is_refused(address: str) -> None:
    with pytest.raises(AddressRefused):
        parse(address)


def test_plain_http_only_goes_to_networks_that_are_allowed() -> None:
    target = parse("http://receiver.example:8080/hook?a=b")
    assert (target.host, target.port, target.path) == ("receiver.example", 8080, "/hook?a=b")
    with pytest.raises(AddressRefused, match="https"):
        check(target, ["8.8.8.8"], ())
    check(target, ["10.20.0.7"], [ip_network("10.20.0.0/16")])
    with pytest.raises(AddressRefused, match=r"10\.21\.0\.7"):
        check(target, ["10.20.0.7", "10.21.0.7"], [ip_network("10.20.0.0/16")])


def test_a_mapped_address_is_the_one_it_maps() -> None:
    target = parse("http://receiver.example/")
    check(target, ["::ffff:10.20.0.7"], [ip_network("10.20.0.0/16")])
    with pytest.raises(AddressRefused):
        check(target, ["::ffff:10.21.0.7"], [ip_network("10.20.0.0/16")])


def test_a_name_without_addresses_is_refused() -> None:
    with pytest.raises(AddressRefused, match="does not resolve"):
        checked("https://receiver.invalid/", policy=NoticePolicy(), resolve=lambda *_: [])


def test_the_host_is_named_with_its_port_where_that_is_unusual() -> None:
    assert parse("https://a.example/").host_header == "a.example"
    assert parse("https://a.example:8443/").host_header == "a.example:8443"
    assert parse("https://[2606:4700::1]:8443/").host_header == "[2606:4700::1]:8443"
