"""The site on a port of its own, in a thread of the test's process."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import uvicorn

from reconcile.asgi import Site


@contextmanager
def serving(protocol: str) -> Iterator[str]:
    """Serve it with one of uvicorn's protocols; its address. Ends as a shutdown does."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(100)
        config = uvicorn.Config(
            Site(), http=protocol, lifespan="on", log_config=None, ws="none", proxy_headers=False
        )
        server = uvicorn.Server(config)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        server.should_exit = True
        thread.join()
