"""A shell with a service of its own, in which the examples of a document run one after the other."""

from __future__ import annotations

import contextlib
import os
import re
import select
import shutil
import signal
import socket
import subprocess
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
# The services that examples name: at these addresses the first one, and at `new:8080` a second one.
FIRST = ("localhost:8080", "127.0.0.1:8080", "old:8080")
SECOND = ("new:8080",)
SECURE = ("https://rolltop.example:8443", "https://rolltop.example")
TIMEOUT = 60


def free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])


def kill_children(pid: int) -> None:
    """Kills what a shell waits for."""
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):
        for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
            kill_children(int(child))
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(child), signal.SIGKILL)


def redis_server() -> str:
    """Returns the Redis or Valkey of `tests/run`."""
    given, valkey = os.environ.get("ROLLTOP_TEST_REDIS"), os.environ.get("ROLLTOP_TEST_VALKEY")
    return given or shutil.which("redis-server") or valkey or shutil.which("valkey-server") or "redis-server"


class Failure(Exception):
    """An example that does not do what the document says."""


class Session:
    """A shell, and the services that its commands reach. Variables, functions and files stay from block to block."""

    def __init__(self, program: Path, needs_second: bool) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="documents-"))
        self.port, self.second, self.redis = free_port(), free_port(), free_port()
        # What texts of the document stand for, such as the cursor that it shows.
        self.learned: dict[str, str] = {}
        # Of the crates in the document.
        self.dependencies = ""
        for name in ("var/lib/rolltop", "var/backups/rolltop", "tmp"):
            (self.folder / name).mkdir(parents=True)
        self.environment = {
            "PATH": f"{HERE / 'bin'}:{os.environ['PATH']}",
            "HOME": str(self.folder),
            "LANG": "C.UTF-8",
            "EXAMPLE_PROGRAM": str(program),
            "EXAMPLE_PYTHON": os.environ["EXAMPLE_PYTHON"],
            "EXAMPLE_CURL": shutil.which("curl") or "curl",
            "EXAMPLE_REDIS": redis_server(),
            "EXAMPLE_REDIS_CLI": shutil.which("redis-cli") or shutil.which("valkey-cli") or "redis-cli",
            "EXAMPLE_FOLDER": str(self.folder),
            "EXAMPLE_SERVICE": "first",
            "EXAMPLE_PORT": str(self.port),
            "EXAMPLE_SECOND_PORT": str(self.second),
            "EXAMPLE_REDIS_PORT": str(self.redis),
            "ROLLTOP_URL": f"http://127.0.0.1:{self.port}",
        }
        reader, writer = os.pipe()
        self.shell = subprocess.Popen(
            ["bash", "--noprofile", "--norc"],
            cwd=self.folder,
            env=self.environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            pass_fds=[writer],
            start_new_session=True,
        )
        os.close(writer)
        self.statuses, self.status_fd = reader, writer
        self.run("set -o pipefail; set -E; export EXAMPLE_STRICT=")
        self.checked("rolltop serve")
        if needs_second:
            self.checked(f"EXAMPLE_SERVICE=second EXAMPLE_PORT={self.second} rolltop serve --data-dir second")

    def close(self) -> None:
        """Ends everything that the examples have started."""
        for file in self.folder.glob("*.pid"):
            try:
                os.kill(int(file.read_text()), signal.SIGKILL)
            except ProcessLookupError:
                pass
        try:
            os.killpg(self.shell.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self.shell.wait()
        os.close(self.statuses)
        shutil.rmtree(self.folder, ignore_errors=True)

    def adapt(self, text: str, command: bool = True) -> str:
        """Replaces addresses and folders in a text of the document, and in a command what was learned."""
        for address in FIRST:
            text = text.replace(address, address.replace("old", "localhost").replace("8080", str(self.port)))
        for address in SECOND:
            text = text.replace(address, f"localhost:{self.second}")
        for address in SECURE:
            text = text.replace(address, f"http://localhost:{self.port}")
        text = text.replace("127.0.0.1:6379", f"127.0.0.1:{self.redis}")
        text = re.sub(r"(?<![\w/.])/(var/lib/rolltop|var/backups/rolltop|tmp/)", rf"{self.folder}/\1", text)
        if command:
            for shown, actual in self.learned.items():
                text = text.replace(shown, actual)
        return text

    def run(self, command: str, before: str = "") -> tuple[int, str]:
        """Runs a command in the shell, after what messages do not show, and returns its status and what it prints."""
        file, output = self.folder / ".command", self.folder / ".output"
        file.write_text(before + command + "\n")
        assert self.shell.stdin
        # Without the pipe for the status, which services in the background would keep open after the end of the shell.
        redirected = f'source "{file}" </dev/null >"{output}" 2>&1 {self.status_fd}>&-'
        self.shell.stdin.write(f"{redirected}; echo $? >&{self.status_fd}\n".encode())
        self.shell.stdin.flush()
        if not select.select([self.statuses], [], [], TIMEOUT)[0]:
            kill_children(self.shell.pid)
            if select.select([self.statuses], [], [], 5)[0]:
                os.read(self.statuses, 64)
            raise Failure(f"does not end within {TIMEOUT} s: {command}\n{output.read_text(errors='replace')}")
        status = os.read(self.statuses, 64)
        printed = output.read_bytes().decode(errors="replace").replace("\r\n", "\n")
        if not status:
            raise Failure(f"ends the shell: {command}\n{printed}")
        return int(status), printed

    def checked(self, command: str) -> str:
        """Runs commands of which none may fail, and returns what they print."""
        failures = self.folder / ".failures"
        failures.unlink(missing_ok=True)
        trap = f"EXAMPLE_STRICT=1; trap 'printf \"status %s: %s\\n\" $? \"$BASH_COMMAND\" >>\"{failures}\"' ERR\n"
        status, printed = self.run(command, before=trap)
        self.run("EXAMPLE_STRICT=; trap - ERR")
        if failures.exists():
            raise Failure(f"a command fails:\n{failures.read_text()}{printed}")
        if status:
            raise Failure(f"status {status}:\n{printed}")
        return printed
