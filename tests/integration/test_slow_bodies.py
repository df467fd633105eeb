"""A client that sends half a body keeps no thread for long."""

import socket
import time
from collections.abc import Callable
from urllib.parse import urlsplit

import pytest
import requests

from reconcile.local.stack import LocalStack

# Shares its stack's process with the other tests of whole stacks.
pytestmark = pytest.mark.xdist_group("swept_stack")


def test_forty_half_sent_bodies_let_the_site_go_after_a_while(
    local_stack_factory: Callable[..., LocalStack],
) -> None:
    stack = local_stack_factory()
    where = urlsplit(stack.url)
    clients = [
        socket.create_connection((str(where.hostname), int(where.port or 0))) for _ in "x" * 40
    ]
    try:
        for client in clients:
            client.sendall(
                b"POST /webhooks/stripe/ HTTP/1.1\r\nHost: 127.0.0.1\r\n"
                b"Content-Length: 500\r\n\r\nabc"
            )
        deadline = time.monotonic() + 40
        while True:
            try:
                answer = requests.get(f"{stack.url}/healthz", timeout=5)
                break
            except requests.RequestException:
                assert time.monotonic() < deadline
        assert answer.status_code == 200
        clients[0].settimeout(30)
        assert clients[0].recv(100).startswith(b"HTTP/1.1 400")
    finally:
        for client in clients:
            client.close()
