"""Results as Markdown."""


def number(value):
    """Three digits that count."""
    if value >= 100:
        return f"{value:,.0f}"
    if value < 0.01:
        return "under 0.01"
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def rate(value):
    digits = len(str(int(value)))
    return f"{round(value, 3 - digits):,.0f}"


def times(summary):
    return f"{number(summary['p50'])} / {number(summary['p99'])} / {number(summary['slowest'])}"


def megabytes(value):
    return f"{value / 1e6:,.0f}"


COLUMNS = (
    "",
    "events/s written",
    "processor s per million events",
    "page, ms",
    "page while 500 events/s are written, ms",
    "slowest of these writes, ms",
    "slowest page around an hour's turn, ms",
    "removing an hour, processor s",
    "memory, MB",
    "disk, MB",
)


def table(results):
    """Pages are p50 / p99 / slowest."""
    lines = ["| " + " | ".join(COLUMNS) + " |", "|---" * len(COLUMNS) + "|"]
    seen = set()
    for result in results:
        again = result["system"] in seen
        seen.add(result["system"])
        name = result["system"] + (f", {result['reader']}" if result["reader"] else "")
        removing = result.get("turn_processor_seconds")
        cells = [
            name,
            "same" if again else rate(result["events_a_second"]),
            "same" if again else number(result["processor_seconds_a_million"]),
            times(result["quiet"]),
            times(result["busy"]),
            number(result["writes"]["slowest"]),
            number(result["turn"]["slowest"]),
            "same" if again else "–" if removing is None else number(removing),
            "same" if again else megabytes(result["memory"]),
            "same" if again else megabytes(result["disk"]),
        ]
        lines.append("| " + " | ".join(cells) + " |")
    own = [result["own_seconds_a_million"] for result in results]
    if own:
        used = f"{number(min(own))} to {number(max(own))}"
        lines += ["", f"(The load generator itself used {used} processor seconds per million events.)"]
    return "\n".join(lines)


def heading(cell, events):
    subjects, slots = cell
    return f"### {subjects:,} subjects, {slots} slots of an hour, {events:,} events"
