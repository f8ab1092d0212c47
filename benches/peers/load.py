"""The events: drawn from a Zipf distribution with a seed, spread evenly over the window's slots; and what is right."""

import heapq
import itertools
import random
from array import array
from collections import Counter

SEED = 20260101
EXPONENT = 1.1
PAGE = 50
NAME_BYTES = 12


class Events:
    """All events as numbers of subjects, in the order of their time."""

    def __init__(self, count, subjects):
        self.count = count
        self.subjects = subjects
        self._random = random.Random(SEED)
        self.names = [b"post-%07d" % number for number in range(subjects)]
        # Shuffled, so that popular subjects do not stand together in the order of names.
        self._random.shuffle(self.names)
        self._weights = list(itertools.accumulate((rank + 1) ** -EXPONENT for rank in range(subjects)))
        self.ids = array("I")
        while len(self.ids) < count:
            self.ids.extend(self._draw(min(1_000_000, count - len(self.ids))))

    def _draw(self, count):
        return self._random.choices(range(self.subjects), cum_weights=self._weights, k=count)

    def more(self, count):
        """Names of further events, for what is written while pages are read."""
        return [self.names[subject] for subject in self._draw(count)]


class Load:
    """The events of one comparison, over `slots` slots."""

    def __init__(self, events, slots):
        self.events = events
        self.slots = slots
        self.scores = Counter(events.ids)

    def _bounds(self, slot):
        return slot * self.events.count // self.slots, (slot + 1) * self.events.count // self.slots

    def size(self, slot):
        start, end = self._bounds(slot)
        return end - start

    def names(self, slot):
        start, end = self._bounds(slot)
        names = self.events.names
        return [names[subject] for subject in self.events.ids[start:end]]

    def ids(self, slot):
        start, end = self._bounds(slot)
        return self.events.ids[start:end]

    def truth(self):
        return Truth(self)


class Disagreement(Exception):
    pass


class Truth:
    """What the scores in the window are, counted here, for one system's turn."""

    def __init__(self, load):
        self.load = load
        names = load.events.names
        self.scores = Counter({names[subject]: count for subject, count in load.scores.items()})
        self.floor = 0

    def count(self, names):
        self.scores.update(names)

    def retire(self):
        """The oldest slot leaves."""
        names = self.load.events.names
        for subject, count in Counter(self.load.ids(self.floor)).items():
            self.scores[names[subject]] -= count
        self.floor += 1

    def check(self, top, who):
        """`top` must be the highest scores, each the subject's own. Which of equal ones come last is free."""
        expected = heapq.nlargest(PAGE, self.scores.values())
        if [score for _, score in top] != expected:
            raise Disagreement(f"{who}: scores {[score for _, score in top][:5]}… are not {expected[:5]}…")
        if len({subject for subject, _ in top}) != len(top):
            raise Disagreement(f"{who}: a subject is listed twice")
        for subject, score in top:
            if self.scores[subject] != score:
                raise Disagreement(f"{who}: {subject.decode()} has {score}, not {self.scores[subject]}")
