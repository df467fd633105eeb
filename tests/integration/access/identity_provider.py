"""An identity provider on a real socket: discovery, authorize, token, keys and userinfo."""

import base64
import hashlib
import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import jwt
from cryptography.hazmat.primitives.asymmetric import rsa

CLIENT_ID, CLIENT_SECRET = "reconcile", "a secret of the client"
KEY_ID = "key-1"


@cache
def key(number: int = 0) -> rsa.RSAPrivateKey:
    """Its own, and others that are not."""
    return rsa.generate_private_key(public_exponent=65_537, key_size=2_048)


class IdentityProvider:
    """`person` is who signs in there; `claims` and the others say what it does wrong."""

    def __init__(self) -> None:
        self.address = ""
        self.person = {"sub": "person-1", "preferred_username": "maya", "name": "Maya Kline"}
        self.claims: dict[str, Any] = {}
        self.left_out: set[str] = set()
        self.signing_key = key()
        self.issuer: str | None = None
        self.tells_of: dict[str, Any] | None = None
        self.codes: dict[str, dict[str, str]] = {}
        self.tokens_given = 0

    def answer(self, path: str, given: dict[str, str]) -> tuple[int, dict[str, Any]]:
        """Status and JSON."""
        match path:
            case "/.well-known/openid-configuration":
                return 200, self._discovery()
            case "/keys":
                public = json.loads(jwt.algorithms.RSAAlgorithm.to_jwk(key().public_key()))
                return 200, {"keys": [public | {"kid": KEY_ID, "alg": "RS256", "use": "sig"}]}
            case "/token":
                return self._token(given)
            case "/userinfo":
                return 200, self.tells_of or self.person
        return 404, {}

    def authorize(self, address: str) -> str:
        """What a browser is sent back to, once the person has agreed there."""
        asked = {name: texts[0] for name, texts in parse_qs(urlsplit(address).query).items()}
        assert address.startswith(f"{self.address}/authorize?")
        assert (asked["client_id"], asked["response_type"]) == (CLIENT_ID, "code")
        assert asked["code_challenge_method"] == "S256"
        code = f"code-{len(self.codes)}"
        self.codes[code] = asked
        back = urlsplit(asked["redirect_uri"])
        return f"{back.path}?{urlencode({'code': code, 'state': asked['state']})}"

    def _discovery(self) -> dict[str, Any]:
        ends = {"authorization": "authorize", "token": "token", "userinfo": "userinfo"}
        return {
            "issuer": self.issuer or self.address,
            **{f"{name}_endpoint": f"{self.address}/{path}" for name, path in ends.items()},
            "jwks_uri": f"{self.address}/keys",
            "token_endpoint_auth_methods_supported": ["client_secret_post"],
        }

    def _token(self, given: dict[str, str]) -> tuple[int, dict[str, Any]]:
        # A code is good for one try.
        asked = self.codes.pop(given.get("code", ""), None)
        challenge = hashlib.sha256(given.get("code_verifier", "").encode()).digest()
        proof = base64.urlsafe_b64encode(challenge).rstrip(b"=").decode()
        if asked is None or given.get("client_secret") != CLIENT_SECRET:
            return 400, {"error": "invalid_grant"}
        if proof != asked["code_challenge"]:
            return 400, {"error": "invalid_grant"}
        self.tokens_given += 1
        now = int(time.time())
        claims: dict[str, Any] = {
            "iss": self.address,
            "aud": CLIENT_ID,
            "sub": self.person["sub"],
            "iat": now,
            "exp": now + 300,
            "nonce": asked["nonce"],
        }
        claims = {
            name: value
            for name, value in (claims | self.claims).items()
            if name not in self.left_out
        }
        answer = {"access_token": "access", "token_type": "Bearer", "expires_in": 300}
        if "id_token" not in self.left_out:
            answer["id_token"] = jwt.encode(
                claims, self.signing_key, algorithm="RS256", headers={"kid": KEY_ID}
            )
        return 200, answer


@contextmanager
def identity_provider() -> Iterator[IdentityProvider]:
    """One that listens."""
    provider = IdentityProvider()

    class Handler(BaseHTTPRequestHandler):
        def _answer(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0)).decode()
            given = {name: texts[0] for name, texts in parse_qs(body).items()}
            status, found = provider.answer(urlsplit(self.path).path, given)
            raw = json.dumps(found).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(raw)))
            self.end_headers()
            self.wfile.write(raw)

        do_GET = do_POST = _answer

        def log_message(self, format: str, *args: Any) -> None:
            """Nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    provider.address = f"http://127.0.0.1:{server.server_port}"
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    yield provider
    server.shutdown()
    server.server_close()
    thread.join()
