"""Connections that do little: requests are bytes made before, and of an answer only what is needed is looked at."""

import socket
import struct
import time


class Refused(Exception):
    pass


class Connection:
    def __init__(self, port):
        self.port = port
        self.open()

    def open(self):
        self.socket = socket.create_connection(("127.0.0.1", self.port), timeout=600)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.file = self.socket.makefile("rb", buffering=1 << 18)

    def send(self, data):
        self.socket.sendall(data)

    def close(self):
        self.file.close()
        self.socket.close()


def http_request(method, path, body=b"", kind="application/json"):
    head = f"{method} {path} HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: {kind}\r\ncontent-length: {len(body)}\r\n\r\n"
    return head.encode() + body


class Http(Connection):
    """HTTP/1.1, one request at a time."""

    IDLE = 2  # seconds; Rolltop closes connections that say nothing for longer

    def open(self):
        super().open()
        self.used = time.monotonic()

    def ask(self, request):
        if time.monotonic() - self.used > self.IDLE:
            self.close()
            self.open()
        self.send(request)
        status = self.file.readline()
        length = None
        while (line := self.file.readline()) not in (b"\r\n", b""):
            if line[:15].lower() == b"content-length:":
                length = int(line[15:])
        if length is None:
            raise Refused(f"an answer without content-length: {status!r}")
        body = self.file.read(length)
        self.used = time.monotonic()
        if status[9:10] != b"2":
            raise Refused(f"{status.decode().strip()}: {body[:300].decode()}")
        return body


def command(*words):
    """A command of Redis as bytes."""
    parts = [b"*%d\r\n" % len(words)]
    for word in words:
        word = word if isinstance(word, bytes) else str(word).encode()
        parts.append(b"$%d\r\n%s\r\n" % (len(word), word))
    return b"".join(parts)


class Redis(Connection):
    """Pipelines whose answers are counted by their ends of lines. None of them has a '-' that is not an error."""

    def ask(self, request, lines, empty=None):
        """Sends, and reads until `lines` ends of lines have come, or exactly what `empty` says."""
        self.send(request)
        chunks = []
        while lines > 0:
            chunk = self.file.read1(1 << 18)
            if not chunk or b"-" in chunk and (b"\n-" in chunk or chunk.startswith(b"-")):
                raise Refused(f"Redis answered {chunk[:300]!r}")
            chunks.append(chunk)
            lines -= chunk.count(b"\n")
            if empty is not None and chunk == empty:
                break
        return b"".join(chunks)


class Postgres(Connection):
    """The simple query protocol, version 3, without authentication."""

    def __init__(self, port):
        super().__init__(port)
        words = b"user\0postgres\0database\0postgres\0\0"
        self.send(struct.pack("!ii", 8 + len(words), 196608) + words)
        self._answer()

    @staticmethod
    def query(sql, copied=None):
        """Statements of one transaction; one of them may be COPY … FROM STDIN, of `copied`."""
        text = sql.encode() + b"\0"
        request = b"Q" + struct.pack("!i", 4 + len(text)) + text
        if copied is not None:
            request += b"d" + struct.pack("!i", 4 + len(copied)) + copied + b"c" + struct.pack("!i", 4)
        return request

    def ask(self, request):
        self.send(request)
        return self._answer()

    def _answer(self):
        rows, failed = [], None
        while True:
            head = self.file.read(5)
            if len(head) < 5:
                raise Refused("PostgreSQL closed the connection")
            body = self.file.read(struct.unpack("!i", head[1:])[0] - 4)
            kind = head[:1]
            if kind == b"D":
                rows.append(body)
            elif kind == b"E":
                failed = body.replace(b"\0", b" ").decode()
            elif kind == b"Z":
                if failed:
                    raise Refused(f"PostgreSQL answered {failed}")
                return rows

    @staticmethod
    def values(row):
        """The columns of a row, as bytes."""
        values, at = [], 2
        for _ in range(struct.unpack("!h", row[:2])[0]):
            (length,) = struct.unpack("!i", row[at : at + 4])
            values.append(row[at + 4 : at + 4 + length])
            at += 4 + length
        return values
