"""Servers as child processes with their own folders, and what /proc says about them."""

import os
import pwd
import shutil
import signal
import socket
import subprocess
import time

from wire import Refused

TICKS = os.sysconf("SC_CLK_TCK")


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Server:
    """A process that is started here and stopped at the end, however that comes."""

    def __init__(self, arguments, folder, user=None, **options):
        self.folder = folder
        self.log = os.path.join(folder, "log.txt")
        account = {}
        if user and os.getuid() == 0:
            entry = pwd.getpwnam(user)
            account = {"user": entry.pw_uid, "group": entry.pw_gid, "extra_groups": []}
        with open(self.log, "ab") as log:
            options = {"stdin": subprocess.DEVNULL, "stdout": log, **options}
            # A session of its own: Ctrl-C reaches this program, which stops its servers in order.
            self.process = subprocess.Popen(
                arguments, cwd=folder, stderr=log, start_new_session=True, **options, **account
            )

    def wait_for(self, attempt, seconds=60):
        """Repeats `attempt` until it is neither cut off nor refused."""
        end = time.monotonic() + seconds
        while True:
            try:
                return attempt()
            except (OSError, Refused) as error:
                if self.process.poll() is not None or time.monotonic() > end:
                    with open(self.log, errors="replace") as log:
                        raise RuntimeError(f"{self.process.args[0]} does not start: {log.read()[-2000:]}") from error
                time.sleep(0.1)

    def stop(self, with_signal=signal.SIGTERM):
        if self.process.poll() is None:
            self.process.send_signal(with_signal)
            try:
                self.process.wait(30)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()


def _stat(pid):
    with open(f"/proc/{pid}/stat", "rb") as file:
        return file.read().rpartition(b")")[2].split()


def processes(servers):
    """The numbers of the servers' processes and of all below them."""
    children = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                children.setdefault(int(_stat(name)[1]), []).append(int(name))
            except OSError:
                pass
    found, queue = [], [server.process.pid for server in servers]
    while queue:
        pid = queue.pop()
        found.append(pid)
        queue += children.get(pid, [])
    return found


def processor_seconds(servers):
    """Processor time of all processes, with those that have ended and were waited for."""
    total = 0
    for pid in processes(servers):
        try:
            # The clock of the process (numbered as by clock_getcpuclockid) counts nanoseconds, /proc only ticks.
            total += time.clock_gettime((~pid << 3) | 2)
            total += sum(map(int, _stat(pid)[13:15])) / TICKS
        except OSError:
            pass
    return total


def memory(servers):
    """Bytes of memory, each shared page divided among those that share it (PSS)."""
    total = 0
    for pid in processes(servers):
        try:
            with open(f"/proc/{pid}/smaps_rollup") as file:
                total += sum(int(line.split()[1]) * 1024 for line in file if line.startswith("Pss:"))
        except OSError:
            pass
    return total


def on_disk(folders):
    """Bytes that the folders' files occupy."""
    total = 0
    for folder in folders:
        for path, _, names in os.walk(folder):
            for name in names:
                try:
                    total += os.lstat(os.path.join(path, name)).st_blocks * 512
                except OSError:
                    pass
    return total


def settle(servers, most=10):
    """Waits until what goes on in the background has ended, `most` seconds at most."""
    end = time.monotonic() + most
    before = processor_seconds(servers)
    while time.monotonic() < end:
        time.sleep(0.5)
        after = processor_seconds(servers)
        if after - before <= 0.03:
            return
        before = after


def start_redis(folder, arguments=()):
    """A Redis that survives a crash of the process, and a power loss but for a second: as Rolltop's `everysec`."""
    port = free_port()
    settings = ["--bind", "127.0.0.1", "--port", str(port), "--dir", folder, "--save", "", "--appendonly", "yes"]
    settings += ["--appendfsync", "everysec", "--maxmemory-policy", "noeviction", *arguments]
    return Server([shutil.which("redis-server"), *settings], folder), port
