"""Posting a notice: one request to an address that was checked just now, and nowhere else.

The name is resolved here, every address it leads to is checked, and the connection is made to one
of those, so that a name that changes between the check and the connection changes nothing. No
redirect is followed, no proxy is used, and of the answer only the beginning is read.
"""

import socket
import ssl
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

import certifi
import urllib3

from operations.domain.addresses import AddressRefused, Target, check, parse
from operations.domain.notices import NoticePolicy, Reply
from operations.providers.bounded_http import BoundedPool, BoundedSecurePool, within

#: How much of an answer is kept, in characters, and read, in bytes.
_KEPT = 500
_READ = 2_000
_MOST_ADDRESSES = 3

Resolve = Callable[[str, int], list[str]]
Post = Callable[..., Reply]


def resolve(host: str, port: int) -> list[str]:
    """The IP addresses of a name, each once; none when it has none."""
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        return []
    return list(dict.fromkeys(str(entry[4][0]) for entry in found))


def checked(
    address: str, *, policy: NoticePolicy, resolve: Resolve = resolve
) -> tuple[Target, list[str]]:
    """Where an address leads now, with the IP addresses that may be used. Raises AddressRefused."""
    target = parse(address)
    found = resolve(target.host, target.port)
    check(target, found, policy.allow_networks)
    return target, found


def post(
    *,
    address: str,
    body: str,
    headers: Mapping[str, str],
    policy: NoticePolicy,
    resolve: Resolve = resolve,
) -> Reply:
    """Post once. Whatever happens is a value.

    Nothing is sent or waited for after the policy's timeout. What can't be cut short is the
    system's name resolution; when that alone took as long, nothing is sent, because the claim on
    this try may have run out and somebody else may be making it.
    """
    started = time.monotonic()

    def reply(**found: object) -> Reply:
        return Reply(duration_ms=round((time.monotonic() - started) * 1_000), **found)  # type: ignore[arg-type]

    try:
        target, found = checked(address, policy=policy, resolve=resolve)
    except AddressRefused as refusal:
        return reply(error=f"Not sent: the address {refusal}"[:_KEPT])
    left_s = policy.timeout_s - (time.monotonic() - started)
    if left_s <= 0:
        return reply(error="Not sent: the address was not resolved in time.")
    with within(left_s):
        for place, ip in enumerate(found[:_MOST_ADDRESSES], start=1):
            try:
                return reply(**_exchange(target, ip, body, headers, left_s))
            except urllib3.exceptions.NewConnectionError as error:
                # Nothing has left: another of its addresses may answer.
                if place == min(len(found), _MOST_ADDRESSES):
                    return reply(error=_in_words(error))
            except (urllib3.exceptions.HTTPError, OSError, ValueError) as error:
                return reply(error=_in_words(error))
    raise AssertionError("An address that was checked leads somewhere.")


def _exchange(
    target: Target, ip: str, body: str, headers: Mapping[str, str], timeout_s: float
) -> dict[str, object]:
    timeout = urllib3.Timeout(connect=timeout_s / 2, read=timeout_s)
    given = {
        "Host": target.host_header,
        "Content-Type": "application/json",
        "User-Agent": "Reconcile",
        "Accept-Encoding": "identity",
        **headers,
    }
    with _pool(target, ip, timeout) as pool:
        response = pool.urlopen(
            "POST",
            target.path,
            body=body.encode(),
            headers=given,
            retries=False,
            redirect=False,
            preload_content=False,
            decode_content=False,
        )
        try:
            kept = _beginning(response)
            return {
                "http_status": response.status,
                "body": kept,
                "error": "Redirects are not followed." if 300 <= response.status < 400 else "",
                "retry_after_s": _retry_after_s(response.headers.get("Retry-After")),
            }
        finally:
            response.close()


def _pool(target: Target, ip: str, timeout: urllib3.Timeout) -> urllib3.HTTPConnectionPool:
    """A connection to this IP address; its certificate has to be the name's."""
    if target.scheme == "http":
        return BoundedPool(ip, target.port, timeout=timeout, maxsize=1)
    return BoundedSecurePool(
        ip,
        target.port,
        timeout=timeout,
        maxsize=1,
        ssl_context=_trust(),
        server_hostname=target.host,
        assert_hostname=target.host,
    )


def _trust() -> ssl.SSLContext:
    """The usual authorities and the system's own, which SSL_CERT_FILE can name."""
    context = ssl.create_default_context()
    context.load_verify_locations(certifi.where())
    return context


def _beginning(response: urllib3.BaseHTTPResponse) -> str:
    """The first characters that came, also of an answer that breaks off.

    The status is what counts; a body that does not end or can't be read takes nothing from it.
    """
    try:
        raw = response.read(_READ)
    except (urllib3.exceptions.HTTPError, OSError, ValueError):
        return ""
    text = raw.decode("utf-8", "replace")
    return "".join(char if char >= " " else " " for char in text)[:_KEPT].strip()


def _retry_after_s(text: str | None) -> float | None:
    """Seconds, from seconds or from a date. RFC 9110, Retry-After."""
    if not text:
        return None
    if text.isascii() and text.isdigit() and len(text) < 10:
        return float(text)
    try:
        at = parsedate_to_datetime(text)
    except ValueError:
        return None
    return max(0.0, (at.astimezone(UTC) - datetime.now(UTC)).total_seconds())


def _in_words(error: Exception) -> str:
    match error:
        case urllib3.exceptions.NewConnectionError():
            return "No connection could be made."
        case urllib3.exceptions.ConnectTimeoutError():
            return "No connection could be made in time."
        case urllib3.exceptions.ReadTimeoutError() | TimeoutError():
            return "No answer came in time."
        case urllib3.exceptions.SSLError() | ssl.SSLError():
            return f"The connection is not trusted: {error}"[:_KEPT]
        case _:
            return f"The connection ended before an answer came: {error}"[:_KEPT]
