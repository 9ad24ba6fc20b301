"""One stream, counted step by step, each value given in the light of the totals so far."""

from __future__ import annotations

import os
import threading
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from discreet.errors import InvalidInput, Unsupported
from discreet.mechanisms.answers import Answers, from_step, from_steps
from discreet.mechanisms.tree import levels, lowest_bit
from discreet.noise import Source
from discreet.noise.source import checked

if TYPE_CHECKING:
    from discreet.mechanisms.stream import TreeCounter

__all__ = ["CounterRun"]


class CounterRun:
    """One stream, step by step: `add(value)` returns the noisy running total so far.

    It keeps one exact sum a level, and the noise of that node. Claim: the totals returned have the law of
    `TreeCounter.release` of the same values. It is made by `TreeCounter.start`, works in any thread of the
    process that made it, and can be neither copied nor stored.
    """

    def __init__(self, counter: TreeCounter, source: Source) -> None:
        self.counter, self._source = counter, checked(source)
        self._lock, self._process = threading.Lock(), os.getpid()
        self._time = 0
        # By level, of a node that is complete: its sum, and the noise that it brings into totals.
        self._sums: list[int] = []
        self._noises: list[int] = []

    @property
    def time(self) -> int:
        """How many steps have been taken."""
        return self._time

    def add(self, value: Any) -> Any:
        """Take the value of the next step, and return the noisy running total."""
        read, steps = self.counter._read(value)
        if not read.scalar:
            raise InvalidInput("a step has one value: hand over a whole stream to release(...)")
        with self._lock:
            self._refuse_to_go_on()
            self._take(int(steps[()]))
            total = self._total(read)
        return self._source.label(total)

    def _refuse_to_go_on(self) -> None:
        if self._process != os.getpid():
            raise Unsupported("a run goes on in the process that started it: two would release one stream")
        if self._time == self.counter.horizon:
            raise Unsupported(
                f"this stream was to have {self.counter.horizon} steps, and they are over: what was promised "
                "holds for as many. Start another run, which is another release and costs as much again"
            )

    def _take(self, step: int) -> None:
        """Complete the longest node that ends here, of the shorter ones that end here and their siblings.

        A step that is interrupted is none: nothing that totals so far are made of changes before the end.
        """
        last = lowest_bit(self._time + 1)
        noise = self._draw()
        if self.counter.consistent:
            for level in range(last):
                noise += self._noises[level] + (self._draw() << level + 1)
        # This replaces a node that is in no total from now on, or adds the first of its level.
        self._sums[last : last + 1] = [step + sum(self._sums[:last])]
        self._noises[last : last + 1] = [noise]
        self._time += 1

    def _draw(self) -> int:
        return int(self.counter.noise._draw((), self._source))

    def _total(self, read: Answers) -> Any:
        """Add up the nodes of this time, each from its noisy sum alone: see `TreeCounter.release`."""
        if not self.counter.consistent:
            noisy = sum(self._sums[level] + self._noises[level] for level in levels(self._time))
            return from_steps(np.array(noisy, object), self.counter._step, read)
        total = 0.0
        for level in levels(self._time):
            parts = (2 << level) - 1
            total += float(parts * self._sums[level] + self._noises[level]) / float(parts)
        return total * from_step(1, self.counter._step)

    def __reduce__(self) -> NoReturn:
        raise Unsupported("a run is not copied or pickled: two copies would release one stream twice")

    def __repr__(self) -> str:
        return f"<CounterRun at step {self._time} of {self.counter.horizon}>"
