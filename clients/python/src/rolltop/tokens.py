"""Tokens for end users (JWT, RFC 7519), as `docs/tokens.md` of Rolltop describes them."""

from __future__ import annotations

import hashlib
import hmac
import time
from base64 import urlsafe_b64encode
from collections.abc import Mapping

from .numbers import print_json
from .queue import new_id

# The service refuses longer ones.
MAX_BYTES = 4_096
# The service takes no signing key with a shorter one.
MIN_SECRET = 32


def sign_token(
    allows: Mapping[str, object],
    *,
    secret: str | bytes,
    kid: str,
    jti: str | None = None,
    expires_in: float = 600.0,
    audience: str = "rolltop",
) -> str:
    """Returns a token that a backend gives to a visitor, who may then send or read what it allows, and nothing else.

    - `allows`: the claim `rolltop`, such as `{"scopes": ["write"], "event": {"type": "like", "fields": {"post_id": "p",
      "user_id": "u"}}, "once": True}`.
    - `secret`, `kid`: secret and id of a signing key of the configuration. The token is signed with HS256; for other
      algorithms use a library for JWT.
    - `jti`: what tells the item of a token with `once` from others: it counts once for each. By default a random text.
    - `expires_in`: seconds from now. The service takes 24 hours at most, if it is not set up in another way.
    - `audience`: `token_audience` of the service.

    Nothing is sent. Raises `ValueError` for a token that is longer than the service takes, and `TypeError` or
    `ValueError` for what is not JSON.
    """
    now = time.time()
    claims = {"aud": audience, "iat": int(now), "exp": int(now + expires_in), "jti": jti or new_id(), "rolltop": allows}
    header = {"alg": "HS256", "kid": kid, "typ": "JWT"}
    signed = b".".join((_text(print_json(header)), _text(print_json(claims))))
    key = secret.encode() if isinstance(secret, str) else secret
    if len(key) < MIN_SECRET:
        raise ValueError(f"the secret has {len(key)} bytes; a signing key has at least {MIN_SECRET}")
    token = b".".join((signed, _text(hmac.digest(key, signed, hashlib.sha256))))
    if len(token) > MAX_BYTES:
        raise ValueError(f"the token has {len(token)} bytes; at most {MAX_BYTES} are allowed")
    return token.decode()


def _text(value: bytes) -> bytes:
    return urlsafe_b64encode(value).rstrip(b"=")
