"""ClickHouse as a library, in a process of its own: a query as JSON on each line of the input, its rows as JSON back."""

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
