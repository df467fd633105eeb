"""Signatures that anybody can check who holds the public key (Ed25519, RFC 8032)."""

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

SEED_BYTES = 32


class SigningKey:
    """A private key, made from 32 secret bytes; `public` is its public half in hex."""

    def __init__(self, seed: bytes) -> None:
        self._key = Ed25519PrivateKey.from_private_bytes(seed)
        self.public = self._key.public_key().public_bytes_raw().hex()

    def sign(self, message: bytes) -> str:
        """The signature in hex."""
        return self._key.sign(message).hex()


def is_signed(message: bytes, *, signature: str, public: str) -> bool:
    """Whether this signature (hex) of the message was made with the key of this public half."""
    try:
        key = Ed25519PublicKey.from_public_bytes(bytes.fromhex(public))
        key.verify(bytes.fromhex(signature), message)
    except (InvalidSignature, ValueError, TypeError):
        return False
    return True
