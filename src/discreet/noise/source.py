"""Where randomness comes from.

`SYSTEM` is the only source meant for people's data, and it has no state. A small request is answered by
the operating system's generator itself; a large one encrypts zeros with AES-256 in counter mode under a
key that was drawn from the operating system for that one request and is forgotten after it. There is
nothing to seed, nothing for two threads to share and nothing for a forked child to replay, because
nothing outlives the call.

`NotPrivate(seed=...)` repeats itself, for tests and demonstrations. It can only be handed to a sampler
by name, it warns when it is made, and whatever it produced says so.
"""

from __future__ import annotations

import hashlib
import os
import threading
import warnings
import weakref
from collections.abc import Callable
from typing import Any, Protocol

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, CipherContext, algorithms, modes
from numpy.typing import NDArray

from discreet.errors import InvalidInput, NotPrivateWarning
from discreet.numbers import exact

__all__ = [
    "SYSTEM",
    "NotPrivate",
    "NotPrivateArray",
    "NotPrivateFloat",
    "NotPrivateInt",
    "Source",
    "SystemSource",
]

Words = NDArray[np.uint64]

# Below this many bytes one call to the operating system is quicker than setting up a cipher.
_SMALL_REQUEST = 4096
_BLOCK = 16
_ZEROS = memoryview(bytes(1 << 18))


class Source(Protocol):
    """Anything that yields independent uniform bits.

    Claim that an implementation makes: no two bits that it ever returns, from any call, thread or
    process, depend on one another (for `SystemSource`: cannot be told apart from such bits without
    breaking AES-256 or the operating system's generator).
    """

    def bytes(self, count: int) -> bytes:
        """Return `count` fresh random bytes."""

    def words(self, count: int) -> Words:
        """Return `count` fresh random 64-bit words."""

    def label(self, values: Any) -> Any:
        """Return what was drawn from this source, marked if it must not be taken for private."""


def checked(source: Source) -> Source:
    """Return `source`, or refuse what is none, before anything is drawn from it."""
    if isinstance(source, type) or not all(
        callable(getattr(source, name, None)) for name in ("bytes", "words", "label")
    ):
        kind = source.__name__ if isinstance(source, type) else type(source).__name__
        raise InvalidInput(f"source must be noise.SYSTEM, or noise.NotPrivate(seed=...) in tests, not {kind}")
    return source


def _encrypt_zeros(stream: CipherContext, size: int) -> memoryview:
    """Return the next `size` bytes of a keystream."""
    out = bytearray(size + _BLOCK - 1)
    for start in range(0, size, len(_ZEROS)):
        piece = min(size - start, len(_ZEROS))
        stream.update_into(_ZEROS[:piece], memoryview(out)[start : start + piece + _BLOCK - 1])
    return memoryview(out)[:size]


def _keystream(key: bytes) -> CipherContext:
    return Cipher(algorithms.AES256(key), modes.CTR(bytes(_BLOCK))).encryptor()


class SystemSource:
    """The operating system's generator, stretched by a cipher for large requests. It holds no state.

    Claim: the bits of every request come from the kernel's generator, or from AES-256-CTR under a key of
    256 bits that the kernel's generator gave for this request alone, so no stream is ever continued,
    copied by fork() or shared between threads.
    """

    def bytes(self, count: int) -> bytes:
        """Return `count` fresh random bytes."""
        if count <= _SMALL_REQUEST:
            return os.urandom(count)
        return bytes(_encrypt_zeros(_keystream(os.urandom(32)), count))

    def words(self, count: int) -> Words:
        """Return `count` fresh random 64-bit words."""
        if 8 * count <= _SMALL_REQUEST:
            return np.frombuffer(os.urandom(8 * count), np.uint64)
        return np.frombuffer(_encrypt_zeros(_keystream(os.urandom(32)), 8 * count), np.uint64)

    def label(self, values: Any) -> Any:
        """Return `values` as they are."""
        return values

    def __repr__(self) -> str:
        return "SYSTEM"


SYSTEM = SystemSource()


# A child of fork() must not wait for a lock that another of its parent's threads held.
_SEEDED: weakref.WeakSet[NotPrivate] = weakref.WeakSet()


def _renew_locks() -> None:
    for source in _SEEDED:
        source._lock = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew_locks)


class NotPrivate:
    """Repeatable randomness for tests and demonstrations. It protects nobody.

    >>> import warnings; warnings.simplefilter("ignore", NotPrivateWarning)
    >>> from discreet import noise
    >>> noise.discrete_laplace(10, 3, source=NotPrivate(seed=1)) # doctest: +ELLIPSIS
    NotPrivateArray([...])
    """

    def __init__(self, *, seed: int | np.integer[Any] | str) -> None:
        if not isinstance(seed, str):
            number = exact(seed, "seed")
            if number.denominator != 1 or not isinstance(seed, (int, np.integer)):
                raise InvalidInput(f"seed must be an int or a str, not {type(seed).__name__}")
            seed = int(number)
        warnings.warn(
            f"noise drawn from NotPrivate(seed={seed!r}) can be repeated by anyone and protects nobody",
            NotPrivateWarning,
            stacklevel=2,
        )
        self._seed = seed
        self._lock = threading.Lock()
        _SEEDED.add(self)
        self._stream = _keystream(hashlib.sha256(f"discreet NotPrivate {seed!r}".encode()).digest())

    def bytes(self, count: int) -> bytes:
        """Return the next `count` bytes of the seeded stream."""
        with self._lock:
            return bytes(_encrypt_zeros(self._stream, count))

    def words(self, count: int) -> Words:
        """Return the next `count` words of the seeded stream."""
        return np.frombuffer(self.bytes(8 * count), np.dtype("<u8")).astype(np.uint64, copy=False)

    def label(self, values: Any) -> Any:
        """Mark `values`: an int, a float and an array become their marked kind, all else a marked array."""
        if isinstance(values, np.ndarray):
            return values.view(NotPrivateArray)
        if isinstance(values, (int, float)):
            return _mark_number(values)
        whole = np.empty(len(values) if isinstance(values, list) else (), object)
        whole[...] = values
        return whole.view(NotPrivateArray)

    def __repr__(self) -> str:
        return f"NotPrivate(seed={self._seed!r})"


def _mark_number(value: int | float | np.number[Any]) -> NotPrivateInt | NotPrivateFloat:
    return NotPrivateInt(value) if isinstance(value, (int, np.integer)) else NotPrivateFloat(value)


def _marked_ufunc(self: Any, ufunc: np.ufunc, method: str, *inputs: Any, **how: Any) -> Any:
    """Let NumPy compute with bare values and mark what comes out, a plain array named by `out=` included."""
    bare = {key: tuple(map(_bare, value)) if key == "out" else _bare(value) for key, value in how.items()}
    return _mark_array(getattr(ufunc, method)(*map(_bare, inputs), **bare))


def _bare(value: Any) -> Any:
    if isinstance(value, _NotPrivateNumber):
        return int(value) if isinstance(value, int) else float(value)  # type: ignore[arg-type]
    return value.view(np.ndarray) if isinstance(value, NotPrivateArray) else value


def _marked(name: str) -> Callable[..., Any]:
    """Return an operation of int, or of float where that is what it takes, whose result is marked."""

    def marked(self: Any, *others: Any) -> Any:
        result: Any = NotImplemented
        if isinstance(self, int):
            result = getattr(int, name)(self, *others)
        if result is NotImplemented and all(isinstance(other, (int, float, type(None))) for other in others):
            result = getattr(float, name)(float(self), *others)
        if isinstance(result, tuple):
            return tuple(map(_mark_number, result))
        return _mark_number(result) if isinstance(result, (int, float)) else result

    return marked


class _NotPrivateNumber:
    """What a marked int and a marked float share: a repr that says so, and arithmetic that keeps it."""

    __add__, __radd__, __sub__, __rsub__ = map(_marked, ("__add__", "__radd__", "__sub__", "__rsub__"))
    __mul__, __rmul__, __neg__, __abs__ = map(_marked, ("__mul__", "__rmul__", "__neg__", "__abs__"))
    __truediv__, __rtruediv__ = map(_marked, ("__truediv__", "__rtruediv__"))
    __floordiv__, __rfloordiv__ = map(_marked, ("__floordiv__", "__rfloordiv__"))
    __mod__, __rmod__, __pow__, __rpow__ = map(_marked, ("__mod__", "__rmod__", "__pow__", "__rpow__"))
    __divmod__, __rdivmod__, __pos__, __round__ = map(
        _marked, ("__divmod__", "__rdivmod__", "__pos__", "__round__")
    )
    __floor__, __ceil__, __trunc__ = map(_marked, ("__floor__", "__ceil__", "__trunc__"))
    __array_ufunc__ = _marked_ufunc

    def __repr__(self) -> str:
        return f"{type(self).__name__}({super().__repr__()})"


class NotPrivateInt(_NotPrivateNumber, int):
    """An integer drawn from a seeded source."""

    __and__, __rand__, __or__, __ror__ = map(_marked, ("__and__", "__rand__", "__or__", "__ror__"))
    __xor__, __rxor__, __invert__ = map(_marked, ("__xor__", "__rxor__", "__invert__"))
    __lshift__, __rlshift__ = map(_marked, ("__lshift__", "__rlshift__"))
    __rshift__, __rrshift__ = map(_marked, ("__rshift__", "__rrshift__"))


class NotPrivateFloat(_NotPrivateNumber, float):
    """A float that came out of noise drawn from a seeded source."""


class NotPrivateArray(np.ndarray[Any, Any]):
    """An array drawn, wholly or in part, from a seeded source.

    So is what NumPy's operators and functions compute from it, and what is picked from it. A copy into a
    plain array, by np.array or into a part of another, is plain.
    """

    __array_ufunc__ = _marked_ufunc

    def __getitem__(self, index: Any) -> Any:
        return _mark_array(super().__getitem__(index))

    def __array_function__(self, *call: Any) -> Any:
        return _mark_array(super().__array_function__(*call))

    def dot(self, *others: Any) -> Any:
        """NumPy's, marked."""
        return _mark_array(np.ndarray.dot(_bare(self), *map(_bare, others)))

    def argmax(self, *how: Any, **more: Any) -> Any:
        """NumPy's, marked."""
        return _mark_array(_bare(self).argmax(*how, **more))

    def argmin(self, *how: Any, **more: Any) -> Any:
        """NumPy's, marked."""
        return _mark_array(_bare(self).argmin(*how, **more))


def _mark_array(value: Any) -> Any:
    """Mark an array, or a number; a truth value, which has no marked kind, as an array of no dimensions."""
    if isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool):
        return _mark_number(value)
    if isinstance(value, np.ndarray) and value.ndim == 0 and value.dtype.kind in "iuf":
        return _mark_number(value.item())
    if isinstance(value, (np.ndarray, np.number, np.bool_, bool)):
        return np.asanyarray(value).view(NotPrivateArray)
    if type(value) is tuple:  # of arrays, where a function has several results; a shape stays as it is
        return tuple(_mark_array(item) if isinstance(item, np.ndarray) else item for item in value)
    return value
