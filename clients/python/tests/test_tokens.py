"""Tests of tokens and of keys with few scopes against the real service."""

from __future__ import annotations

import hashlib
import unittest

from service import CONFIGURATION, Service

from rolltop import Rolltop, RolltopError, sign_token

SECRET, KID = "0123456789abcdef" * 4, "00000000000000a1"
KEYS = f"""
[[keys]]
id = "{KID}"
name = "likes"
kind = "signing"
secret = "{SECRET}"
scopes = ["write", "view"]
boards = ["hot-*"]
"""

# A key that may send, and see nothing.
SENDER_ID, SENDER_BITS = "00000000000000a2", bytes(range(32))
KEYS += f"""
[[keys]]
id = "{SENDER_ID}"
hash = "{hashlib.sha256(SENDER_BITS).hexdigest()}"
name = "sender"
scopes = ["write"]
boards = ["hot-*"]
"""


class Tokens(unittest.TestCase):
    @classmethod
    def setUpClass(cls) -> None:
        cls.service = Service(configuration=CONFIGURATION + KEYS)

    @classmethod
    def tearDownClass(cls) -> None:
        cls.service.close()

    def client(self, token: str) -> Rolltop:
        client = Rolltop(self.service.url, token, repeat_for=0)
        self.addCleanup(client.close)
        return client

    def test_an_event_counts_once(self) -> None:
        event = {"type": "like", "fields": {"post_id": "p", "user_id": "é"}}
        for jti, counted in (("a", 1), ("a", 0), ("b", 1)):
            token = sign_token(
                {"scopes": ["write"], "event": event, "once": True}, secret=SECRET.encode(), kid=KID, jti=jti
            )
            receipt = self.client(token).request("POST", "/v1/events", {})
            self.assertEqual((receipt["accepted"], receipt["duplicates"]), (counted, 1 - counted))
        reader = self.client(sign_token({"scopes": ["view"]}, secret=SECRET, kid=KID))
        self.assertEqual(reader.board("hot-posts").subject("p")["score"], 2)

    def test_a_key_that_sees_nothing_sets_attributes(self) -> None:
        board = self.client(f"rt_{SENDER_ID}_{SENDER_BITS.hex()}").board("hot-posts")
        self.assertIsNone(board.set_attributes("q", {"name": "Ann"}))
        self.assertIsNone(board.change_attributes("q", {"level": 1}))
        reader = self.client(sign_token({"scopes": ["view"]}, secret=SECRET, kid=KID))
        self.assertEqual(reader.board("hot-posts").attributes("q"), {"name": "Ann", "level": 1})

    def test_what_is_not_valid_is_refused(self) -> None:
        for more, code in (
            ({"secret": SECRET[1:]}, "invalid_token"),
            ({"audience": "another"}, "invalid_token"),
            ({"expires_in": -60}, "token_expired"),
        ):
            token = sign_token({"scopes": ["view"]}, **{"secret": SECRET, "kid": KID, **more})  # type: ignore[arg-type]
            with self.assertRaises(RolltopError) as raised:
                self.client(token).board("hot-posts").top()
            self.assertEqual(raised.exception.code, code)
        with self.assertRaises(ValueError):
            sign_token({"scopes": ["view"], "boards": ["x" * 4_000]}, secret=SECRET, kid=KID)


if __name__ == "__main__":
    unittest.main()
