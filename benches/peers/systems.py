"""What is compared. Each system says what a batch of events is to it, how its top is read, and what an hour's turn is.

Slots are counted from 0; slot 0 begins at 2026-01-01T00:00:00Z. After the load the window is slots 0 to `slots` - 1.
"""

import json
import os
import shutil
import signal
import struct
import subprocess
import threading
import time
from datetime import datetime, timedelta, timezone

from load import PAGE
from servers import Server, free_port, start_redis
from wire import Http, Postgres, Redis, command, http_request

BEGIN = datetime(2026, 1, 1, tzinfo=timezone.utc)


def hour(slot):
    return (BEGIN + timedelta(hours=slot)).strftime("%Y-%m-%dT%H:%M:%SZ")


class Unavailable(Exception):
    """The system cannot be had here; says why."""


class System:
    """What all have in common."""

    connections = 2  # that write the load
    batch = 10_000  # events
    interval = 0.02  # seconds between the small batches that are written while pages are read
    removes = True  # whether a slot that leaves costs anything besides pages

    def __init__(self, load, folder, tools):
        self.load = load
        self.folder = folder
        self.tools = tools
        self.servers = []
        self.floor = 0  # the oldest slot of the window
        self.data = [folder]  # folders that count as its disk space

    def start(self):
        raise NotImplementedError

    def stop(self):
        for server in reversed(self.servers):
            server.stop()

    def steps(self):
        """The load as (slot, payloads of it), one slot after the other."""
        for slot in range(self.load.slots):
            names = self.load.names(slot)
            size = min(self.batch, -(-len(names) // self.connections)) or 1
            yield slot, [self.payload(slot, names[at : at + size]) for at in range(0, len(names), size)]

    def begin(self, slot):
        """The slot is now the newest."""

    def loaded(self):
        """After the load, not measured."""

    def writer(self):
        """A function that writes one payload; on a connection of its own."""
        raise NotImplementedError

    def payload(self, slot, names):
        raise NotImplementedError

    def readers(self):
        """(title, read, parse): `read` reads the top as bytes, `parse` says (subject, score) of them."""
        raise NotImplementedError

    def turn(self):
        """An hour passes: one slot leaves. Returns when nothing of it is left."""
        raise NotImplementedError


class Rolltop(System):
    """NDJSON streams to one board. Its clock is simulated, so that it can be moved from hour to hour."""

    name = "Rolltop, embedded store"
    store = "embedded"

    def start(self):
        data = os.path.join(self.folder, "rolltop")
        os.mkdir(data)
        config = os.path.join(self.folder, "rolltop.toml")
        with open(config, "w") as file:
            file.write(f'[boards.top]\nmetric = "COUNT({self.load.slots}h, like, post_id)"\nslot = "1h"\n')
        self.port = free_port()
        settings = ["--config", config, "--listen", f"127.0.0.1:{self.port}", "--data-dir", data]
        settings += ["--store", self.store, "--clock", f"simulated={hour(0)}"]
        server = Server([self.tools.rolltop, "serve", *settings], self.folder)
        self.servers.append(server)
        server.wait_for(lambda: Http(self.port).ask(http_request("GET", "/readyz")))
        self.control = Http(self.port)

    def begin(self, slot):
        self.control.ask(http_request("PUT", "/v1/clock", json.dumps({"now": hour(slot)}).encode()))

    def payload(self, slot, names):
        lines = b'{"subject":"' + b'"}\n{"subject":"'.join(names) + b'"}\n'
        path = "/v1/boards/top/increments"
        return len(names), http_request("POST", path, lines, "application/x-ndjson")

    def writer(self):
        connection = Http(self.port)

        def write(payload):
            count, request = payload
            answer = connection.ask(request)
            if b'"accepted":%d,' % count not in answer:
                raise RuntimeError(f"Rolltop did not count everything: {answer[:300]!r}")

        return write

    def readers(self):
        connection = Http(self.port)
        request = http_request("GET", f"/v1/boards/top/rankings?limit={PAGE}")

        def parse(body):
            return [(item["subject"].encode(), item["score"]) for item in json.loads(body)["items"]]

        return [("", lambda: connection.ask(request), parse)]

    def turn(self):
        self.floor += 1
        self.begin(self.floor + self.load.slots - 1)
        first = http_request("GET", "/v1/boards/top/rankings?limit=1")
        for _ in range(6000):
            if b'"retiring":0,' in self.control.ask(first):
                return
            time.sleep(0.01)
        raise RuntimeError("a slot was not retired within a minute")


class RolltopRedis(Rolltop):
    name = "Rolltop, Redis store"

    def start(self):
        if not shutil.which("redis-server"):
            raise Unavailable("there is no redis-server")
        folder = os.path.join(self.folder, "redis")
        os.mkdir(folder)
        redis, port = start_redis(folder)
        self.servers.append(redis)
        redis.wait_for(lambda: Redis(port).ask(command("PING"), 1))
        self.store = f"redis://127.0.0.1:{port}"
        super().start()


class HourlySets(System):
    """A sorted set for each hour; a read unites those of the window."""

    name = "Redis, hourly sorted sets"
    batch = 1_000
    seconds = 1  # that an answer is kept for
    def start(self):
        if not shutil.which("redis-server"):
            raise Unavailable("there is no redis-server")
        server, self.port = start_redis(self.folder)
        self.servers.append(server)
        server.wait_for(lambda: Redis(self.port).ask(command("PING"), 1))
        self.control = Redis(self.port)
        self._move()

    @staticmethod
    def _key(slot):
        return b"likes:%05d" % slot

    def _move(self):
        """The commands of a read, for the window as it is now."""
        keys = [self._key(slot) for slot in range(self.floor, self.floor + self.load.slots)]
        # With the hour in its name, a kept union is never one of the hour before.
        kept = b"kept:%05d" % self.floor

        def unite(into):
            return command("ZUNIONSTORE", into, len(keys), *keys)

        def page(of):
            return command("ZREVRANGE", of, 0, PAGE - 1, "WITHSCORES")

        self.united = unite(b"united") + page(b"united")
        self.kept = page(kept)
        self.kept_again = unite(kept) + command("EXPIRE", kept, self.seconds) + page(kept)

    def payload(self, slot, names):
        key = self._key(slot)
        head = b"*4\r\n$7\r\nZINCRBY\r\n$%d\r\n%s\r\n$1\r\n1\r\n$%d\r\n" % (len(key), key, len(names[0]))
        increments = head + (b"\r\n" + head).join(names) + b"\r\n"
        return 2 * len(names) + 1, increments + command("EXPIRE", key, (self.load.slots + 1) * 3600)

    def writer(self):
        connection = Redis(self.port)
        return lambda payload: connection.ask(payload[1], payload[0])

    def readers(self):
        connection = Redis(self.port)
        lines = 1 + 4 * PAGE

        def united():
            return connection.ask(self.united, lines + 1)

        def kept():
            answer = connection.ask(self.kept, lines, empty=b"*0\r\n")
            return connection.ask(self.kept_again, lines + 2) if answer == b"*0\r\n" else answer

        def parse(answer):
            words = answer[answer.index(b"*") :].split(b"\r\n")[2::2]
            return list(zip(words[0::2], map(int, words[1::2])))

        return [("union at each read", united, parse), (f"union kept for {self.seconds} s", kept, parse)]

    def turn(self):
        leaving = self._key(self.floor)
        self.floor += 1
        self._move()
        # What EXPIRE does when the time has come.
        self.control.ask(command("DEL", leaving), 1)


class PostgresRollup(System):
    """A row for each hour and subject. A batch is copied into a temporary table and added in the same transaction."""

    name = "PostgreSQL, hourly roll-up"
    connections = 1  # a second one waits for the rows of popular subjects, which are in every batch
    batch = 50_000  # a popular subject costs one update a batch, so large ones help
    settings = {
        "shared_buffers": "2GB",
        "work_mem": "256MB",
        "max_wal_size": "8GB",
        "synchronous_commit": "off",
    }

    def start(self):
        if not self.tools.postgres:
            raise Unavailable("there are no programs initdb and postgres")
        self.port = free_port()
        folder = os.path.join(self.folder, "postgres")
        os.mkdir(folder)
        user = "postgres"
        if os.getuid() == 0:
            shutil.chown(folder, user)
        data = os.path.join(folder, "cluster")
        tool = os.path.join(self.tools.postgres, "initdb")
        locale = ["--encoding=UTF8", "--locale=C"]
        initdb = Server([tool, "-D", data, "-A", "trust", "-U", "postgres", *locale], folder, user)
        if initdb.process.wait() != 0:
            with open(initdb.log) as log:
                raise Unavailable(f"initdb failed: {log.read()[-500:]}")
        settings = {"port": self.port, "listen_addresses": "127.0.0.1", "unix_socket_directories": "", **self.settings}
        arguments = [word for key, value in settings.items() for word in ("-c", f"{key}={value}")]
        server = Server([os.path.join(self.tools.postgres, "postgres"), "-D", data, *arguments], folder, user)
        self.servers.append(server)
        self.control = server.wait_for(lambda: Postgres(self.port))
        create = (
            "CREATE TABLE likes (hour timestamptz, subject text, n integer NOT NULL, PRIMARY KEY (hour, subject))"
            " WITH (fillfactor = 80)"
        )
        self.control.ask(Postgres.query(create))

    def stop(self):
        for server in self.servers:
            server.stop(signal.SIGINT)  # its "fast" shutdown

    def payload(self, slot, names):
        roll_up = (
            f"COPY batch FROM STDIN; INSERT INTO likes SELECT '{hour(slot)}', subject, count(*) FROM batch"
            " GROUP BY subject ORDER BY subject"  # in order: two writers cannot wait for each other
            " ON CONFLICT (hour, subject) DO UPDATE SET n = likes.n + excluded.n"
        )
        return Postgres.query(roll_up, b"\n".join(names) + b"\n")

    def writer(self):
        connection = Postgres(self.port)
        connection.ask(Postgres.query("CREATE TEMP TABLE batch (subject text) ON COMMIT DELETE ROWS"))
        return connection.ask

    def loaded(self):
        self.control.ask(Postgres.query("VACUUM ANALYZE likes"))

    def readers(self):
        connection = Postgres(self.port)

        def read():
            select = (
                f"SELECT subject, sum(n) AS score FROM likes WHERE hour >= '{hour(self.floor)}'"
                f" AND hour < '{hour(self.floor + self.load.slots)}'"
                f" GROUP BY subject ORDER BY score DESC LIMIT {PAGE}"
            )
            return connection.ask(Postgres.query(select))

        def parse(rows):
            return [(subject, int(score)) for subject, score in map(Postgres.values, rows)]

        return [("", read, parse)]

    def turn(self):
        self.floor += 1
        self.control.ask(Postgres.query(f"DELETE FROM likes WHERE hour < '{hour(self.floor)}'"))


class ClickHouse(System):
    """Raw events in a MergeTree table, in the process of chdb (see clickhouse_child.py)."""

    name = "ClickHouse (chdb), raw events"
    connections = 1  # the library runs one query after the other, each on all cores
    batch = 100_000
    interval = 1  # many small inserts make many parts: one a second is what its manual recommends
    removes = False  # old parts go when parts are merged; the query leaves them out
    columns = "'at DateTime, subject String'"

    def start(self):
        if not self.tools.chdb_python:
            raise Unavailable("the Python package chdb cannot be had")
        self.data = [os.path.join(self.folder, "chdb")]
        self.blocks = os.path.join(self.folder, "blocks")
        os.mkdir(self.blocks)
        self.made = 0
        child = os.path.join(os.path.dirname(os.path.abspath(__file__)), "clickhouse_child.py")
        arguments = [self.tools.chdb_python, child, self.data[0]]
        server = Server(arguments, self.folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.servers.append(server)
        self.pipe = server.process
        self.lock = threading.Lock()
        self._ask("CREATE DATABASE peers")
        self._ask("CREATE TABLE peers.likes (at DateTime, subject String) ENGINE = MergeTree ORDER BY at")

    def stop(self):
        for server in self.servers:
            server.process.stdin.close()  # which ends it
            try:
                server.process.wait(60)
            except subprocess.TimeoutExpired:
                server.stop()

    def _ask(self, sql):
        with self.lock:
            self.pipe.stdin.write(json.dumps(sql).encode() + b"\n")
            self.pipe.stdin.flush()
            answer = self.pipe.stdout.readline()
        if not answer:
            raise RuntimeError("the process of chdb has ended")
        answer = json.loads(answer)
        if "failed" in answer:
            raise RuntimeError(f"chdb: {answer['failed']}")
        return answer["rows"]

    def _file(self, content):
        self.made += 1
        path = os.path.join(self.blocks, f"{self.made}.bin")
        with open(path, "wb") as file:
            file.write(content)
        return path

    @staticmethod
    def _rows(slot, names):
        head = struct.pack("<I", int((BEGIN + timedelta(hours=slot)).timestamp())) + bytes([len(names[0])])
        return head + head.join(names)

    def payload(self, slot, names):
        return self._file(self._rows(slot, names))

    def steps(self):
        """Blocks of one size: raw events need not be divided at the hours."""
        pending = bytearray()
        for slot in range(self.load.slots):
            names = self.load.names(slot)
            pending += self._rows(slot, names)
            size = self.batch * len(self._rows(slot, names[:1]))
            payloads = []
            while len(pending) >= size or pending and slot == self.load.slots - 1:
                payloads.append(self._file(pending[:size]))
                del pending[:size]
            yield slot, payloads

    def writer(self):
        def write(path):
            self._ask(f"INSERT INTO peers.likes SELECT * FROM file('{path}', RowBinary, {self.columns})")

        return write

    def readers(self):
        def read():
            start = int((BEGIN + timedelta(hours=self.floor)).timestamp())
            end = start + self.load.slots * 3600
            return self._ask(
                f"SELECT subject, count() AS score FROM peers.likes WHERE at >= {start} AND at < {end}"
                f" GROUP BY subject ORDER BY score DESC LIMIT {PAGE}"
            )

        def parse(rows):
            return [(subject.encode(), int(score)) for subject, score in (line.split("\t") for line in rows)]

        return [("", read, parse)]

    def turn(self):
        self.floor += 1


ALL = {
    "rolltop": Rolltop,
    "rolltop-redis": RolltopRedis,
    "redis": HourlySets,
    "postgres": PostgresRollup,
    "clickhouse": ClickHouse,
}
