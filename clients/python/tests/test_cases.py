"""The table of cases that all clients run: `clients/cases.json`."""

from __future__ import annotations

import asyncio
import json
import logging
import time
import unittest
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

from answers import Answers, answer, receipt

from rolltop import AsyncRolltop, Batching, Reports, Rolltop, RolltopError

CASES = json.loads((Path(__file__).parents[2] / "cases.json").read_text(encoding="utf-8"))
LATER = 60.0


def given(value: Any) -> Any:
    """Returns an argument as a program gives it."""
    match value:
        case {"float": text}:
            return float(text)
        case {"integer": text}:
            return int(text)
        case {"decimal": text}:
            return Decimal(text)
        case dict():
            return {name: given(member) for name, member in value.items()}
    return value


def compared(item: Any, expected: Any) -> Any:
    """Returns what was sent, with the texts of numbers, and without an id that was not given."""
    if isinstance(item, dict):
        return {name: compared(value, ()) for name, value in item.items() if name != "id" or "id" in expected}
    return str(item).lower() if isinstance(item, bool) else str(item)


def reply(script: Any, items: list[Any]) -> bytes:
    """Returns the text of an answer of the table."""
    whole = receipt(len(items))
    if isinstance(script, str):
        # One without a length ends the connection.
        return {"break": b"", "cut": whole.replace(b"content-length", b"x-length")[:-5]}[script]
    status, code = script["status"], script.get("code")
    if script.get("page"):
        return answer(status, b"<html>", "text/html")
    if status == 200:
        rejected = [{"detail": "", **one} for one in script.get("rejected", ())]
        return answer(200, script["body"]) if "body" in script else receipt(len(items) - len(rejected), *rejected)
    wait = f"retry-after: {script['retry_after']}\r\n" if "retry_after" in script else ""
    return answer(status, {"status": status, "code": code, "title": code, "detail": "a test"}, headers=wait)


class Cases(unittest.TestCase):
    def setUp(self) -> None:
        logging.getLogger("rolltop").setLevel(logging.CRITICAL)
        self.addCleanup(logging.getLogger("rolltop").setLevel, logging.NOTSET)

    def serve(self, answers: list[Any]) -> Answers:
        left = list(answers)
        server = Answers(lambda items: reply(left.pop(0), items) if left else answer(500, b"one too many"))
        self.addCleanup(server.close)
        return server

    def check_call(self, case: dict[str, Any], act: Callable[[str, Callable[[Any], Any]], None]) -> None:
        """`act` calls a function with a client of this address, and closes it."""
        server = self.serve([{"status": 200}])

        def use(client: Any) -> Any:
            arguments = given(case.get("add") or case["event"])
            if "add" in case:
                return client.board("b", Batching(seconds=LATER)).add(arguments.pop("subject"), **arguments)
            return client.event(arguments.pop("type"), arguments.pop("fields"), **arguments)

        if "error" in case:
            with self.assertRaisesRegex((TypeError, ValueError), case["error"]):
                act(server.url, use)
            self.assertEqual(server.requests, [])
        else:
            act(server.url, use)
            [[item]] = server.requests
            self.assertTrue(item["id"])
            self.assertEqual(compared(item, case["sends"]), case["sends"])

    def test_calls(self) -> None:
        def act(url: str, use: Callable[[Any], Any]) -> None:
            with Rolltop(url) as client:
                use(client)

        def act_async(url: str, use: Callable[[Any], Any]) -> None:
            async def run() -> None:
                async with AsyncRolltop(url) as client:
                    await use(client)

            asyncio.run(run())

        for case in CASES["calls"]:
            for which in (act, act_async):
                with self.subTest(case=case, client=which.__name__):
                    self.check_call(case, which)

    def test_answers(self) -> None:
        for case in CASES["answers"]:
            for ends, is_told in (("flush", True), ("close", False), ("flush", False)):
                if ends == "flush" and not is_told and "fails" not in case:
                    continue
                for run in (self.run_threads, lambda *about: asyncio.run(self.run_async(*about))):
                    with self.subTest(case=case["name"], ends=ends, is_told=is_told):
                        self.check_answers(case, ends, is_told, run)

    def check_answers(self, case: dict[str, Any], ends: str, is_told: bool, run: Callable[..., str | None]) -> None:
        told: list[list[str]] = []
        reports = Reports(
            on_rejected=(lambda item, code, _: told.append([item["subject"], code])) if is_told else None,
            on_failed=(lambda items, error: told.extend([item["subject"], error.code] for item in items))
            if is_told
            else None,
            give_up_after=case.get("give_up"),
        )
        server, began = self.serve(case["answers"]), time.monotonic()
        batching = Batching(items=case.get("batch", 500), seconds=LATER)
        failure = run(server.url, case["subjects"], batching, reports, ends)
        self.assertEqual(failure, None if is_told else case.get("fails"))
        self.assertGreaterEqual(time.monotonic() - began, case.get("waits", 0))
        self.assertEqual(["".join(item["subject"] for item in items) for items in server.requests], case["requests"])
        self.assertEqual(told, case["told"] if is_told else [])
        ids = {(item["subject"], item["id"]) for items in server.requests for item in items}
        self.assertEqual(len(ids), len(case["subjects"]))

    def run_threads(self, url: str, subjects: list[str], batching: Batching, reports: Reports, ends: str) -> str | None:
        client = Rolltop(url)
        for subject in subjects:
            client.board("b", batching, reports).add(subject)
        try:
            self.assertTrue(client.flush(60) if ends == "flush" else client.close(60))
        except RolltopError as error:
            return error.code
        finally:
            # What was raised is not raised again.
            client.close()
        return None

    async def run_async(
        self, url: str, subjects: list[str], batching: Batching, reports: Reports, ends: str
    ) -> str | None:
        client = AsyncRolltop(url)
        for subject in subjects:
            await client.board("b", batching, reports).add(subject)
        try:
            async with asyncio.timeout(60):
                await (client.flush() if ends == "flush" else client.close())
        except RolltopError as error:
            return error.code
        finally:
            await client.close()
        return None


if __name__ == "__main__":
    unittest.main()
