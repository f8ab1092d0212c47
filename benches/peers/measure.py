"""One system's turn: write the load, read pages, let hours pass; after each the scores are checked."""

import gc
import queue
import threading
import time

from servers import memory, on_disk, processor_seconds, settle

RATE = 500  # events a second that are written while pages are read


class Times:
    """Seconds that something took, each time."""

    def __init__(self):
        self.seconds = []

    def of(self, action):
        start = time.perf_counter()
        answer = action()
        self.seconds.append(time.perf_counter() - start)
        return answer

    def milliseconds(self, share):
        ordered = sorted(self.seconds)
        return 1000 * ordered[min(int(share * len(ordered)), len(ordered) - 1)]

    def summary(self):
        return {
            "n": len(self.seconds),
            "p50": self.milliseconds(0.5),
            "p99": self.milliseconds(0.99),
            "slowest": self.milliseconds(1),
        }


def pages(read, seconds, most=float("inf"), least=3):
    """Reads one page after the other for some time."""
    times = Times()
    end = time.monotonic() + seconds
    while len(times.seconds) < least or time.monotonic() < end and len(times.seconds) < most:
        times.of(read)
    return times


class Background(threading.Thread):
    """Runs a function until told to stop, and hands on its error."""

    def __init__(self, action):
        super().__init__(daemon=True)
        self.action = action
        self.failed = None
        self.ending = threading.Event()
        self.start()

    def run(self):
        try:
            self.action(self.ending)
        except BaseException as error:
            self.failed = error

    def end(self):
        self.ending.set()
        self.join()
        if self.failed:
            raise self.failed


def write_load(system):
    """Writes everything, slot after slot, over the system's connections. Returns the seconds
    that it took, and the processor seconds that this program used."""
    steps = list(system.steps())
    work = queue.SimpleQueue()
    failures = []

    def drain(write):
        while (payload := work.get()) is not None:
            if not failures:
                try:
                    write(payload)
                except Exception as error:
                    failures.append(error)
            done.release()

    done = threading.Semaphore(0)
    threads = [
        threading.Thread(target=drain, args=(system.writer(),), daemon=True) for _ in range(system.connections)
    ]
    for thread in threads:
        thread.start()
    gc.collect()
    start, own = time.perf_counter(), time.process_time()
    for slot, payloads in steps:
        system.begin(slot)
        for payload in payloads:
            work.put(payload)
        for _ in payloads:
            done.acquire()
        if failures:
            raise failures[0]
    seconds, own = time.perf_counter() - start, time.process_time() - own
    for _ in threads:
        work.put(None)
    return seconds, own


def write_steadily(system, truth, times):
    """RATE events a second into the newest slot: every `interval` what is due by then, timed from when it was due."""
    slot = system.load.slots - 1
    write = system.writer()

    def run(ending):
        start = time.perf_counter()
        written = 0
        due = start
        while not ending.is_set():
            due = max(due + system.interval, time.perf_counter() - system.interval)
            time.sleep(max(0, due - time.perf_counter()))
            names = system.load.events.more(int((time.perf_counter() - start) * RATE) - written)
            if names:
                write(system.payload(slot, names))
                times.seconds.append(time.perf_counter() - due)
                truth.count(names)
                written += len(names)

    return Background(run)


def around_a_turn(system, read):
    """Pages one after the other while an hour's turn happens: before, during and after it."""
    times = Times()

    def run(ending):
        while not ending.is_set():
            times.of(read)

    reader = Background(run)
    time.sleep(0.5)
    start = time.perf_counter()
    system.turn()
    took = time.perf_counter() - start
    enough = len(times.seconds) + 2
    while (len(times.seconds) < enough or time.perf_counter() - start < took + 0.5) and reader.is_alive():
        time.sleep(0.02)
    reader.end()
    return times.summary()


def measure(system, options, say):
    """Everything about one system: a list of results, one for each way of reading."""
    load = system.load
    truth = load.truth()
    empty = on_disk(system.data)

    say("  writing")
    used = processor_seconds(system.servers)
    seconds, own = write_load(system)
    settle(system.servers)
    used = processor_seconds(system.servers) - used
    common = {
        "system": system.name,
        "events_a_second": load.events.count / seconds,
        "processor_seconds_a_million": used / load.events.count * 1e6,
        "own_seconds_a_million": own / load.events.count * 1e6,
    }
    system.loaded()
    readers = system.readers()

    def check(read, parse, when):
        truth.check(parse(read()), f"{system.name}, {when}")

    results = []
    for title, read, parse in readers:
        say(f"  reading {title}".rstrip())
        result = {**common, "reader": title}
        check(read, parse, "after the load")
        result["quiet"] = pages(read, options.seconds, options.reads).summary()
        writes = Times()
        writer = write_steadily(system, truth, writes)
        try:
            result["busy"] = pages(read, max(options.seconds, 2 * system.interval)).summary()
        finally:
            writer.end()
        result["writes"] = writes.summary()
        time.sleep(1.1)  # a kept answer is as old as that
        check(read, parse, "after writes between reads")
        results.append(result)
    common["memory"] = memory(system.servers)
    common["disk"] = on_disk(system.data) - empty

    for result, (title, read, parse) in zip(results, readers):
        say(f"  an hour's turn {title}".rstrip())
        result["turn"] = around_a_turn(system, read)
        truth.retire()
        check(read, parse, "after an hour's turn")
    if system.removes:
        used = processor_seconds(system.servers)
        start = time.perf_counter()
        system.turn()
        common["turn_seconds"] = time.perf_counter() - start
        settle(system.servers, 3)
        common["turn_processor_seconds"] = processor_seconds(system.servers) - used
        truth.retire()
        check(*readers[0][1:], "after an hour's turn")
    for result in results:
        result.update(common)
    return results
