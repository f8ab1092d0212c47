"""ClickHouse as a library, in a process of its own: reads queries, a JSON string a line, and answers rows as JSON."""

import json
import sys

from chdb.session import Session

session = Session(sys.argv[1])
for line in sys.stdin.buffer:
    try:
        text = session.query(json.loads(line), "TSV").bytes()
        rows = text.decode() if isinstance(text, bytes) else text or ""
        answer = {"rows": rows.splitlines()}
    except Exception as error:
        answer = {"failed": str(error)}
    sys.stdout.write(json.dumps(answer) + "\n")
    sys.stdout.flush()
session.close()
