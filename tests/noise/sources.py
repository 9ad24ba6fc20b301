"""Sources of chosen bits."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.noise import SYSTEM


class Chosen:
    """Returns the chosen bytes first, then the system's; counts how many bytes were asked for."""

    def __init__(self, first: bytes = b"") -> None:
        self.left = first
        self.used = 0

    @classmethod
    def of_words(cls, *words: int) -> "Chosen":
        return cls(b"".join(word.to_bytes(8, "little") for word in words))

    def bytes(self, count: int) -> bytes:
        self.used += count
        taken, self.left = self.left[:count], self.left[count:]
        return taken + SYSTEM.bytes(count - len(taken))

    def words(self, count: int) -> NDArray[np.uint64]:
        return np.frombuffer(self.bytes(8 * count), "<u8").astype(np.uint64)

    def label(self, values: Any) -> Any:
        return values


class Constant(Chosen):
    """Returns one byte for ever: 0 makes a uniform as low as it can be, 255 as high."""

    def __init__(self, byte: int) -> None:
        super().__init__()
        self.byte = byte

    def bytes(self, count: int) -> bytes:
        return bytes([self.byte]) * count


class Silent(Chosen):
    """Fails the test when asked for anything beyond the chosen bytes."""

    def bytes(self, count: int) -> bytes:
        assert count <= len(self.left), "more randomness was asked for than this needs"
        return super().bytes(count)
