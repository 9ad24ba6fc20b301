"""The source of randomness: nothing is replayed, shared, seeded by accident or mistaken for private."""

import copy
import inspect
import json
import math
import os
import pickle
import random
import signal
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from discreet import noise
from discreet.errors import InvalidInput, NotPrivateWarning
from discreet.noise import source as source_module
from discreet.noise.source import NotPrivate, _encrypt_zeros, _keystream
from tests.statistics import assert_passes, bit_findings, chi_square

MARKED = (noise.NotPrivateArray, noise.NotPrivateInt, noise.NotPrivateFloat)
SIZES = [0, 1, 7, 15, 16, 17, 4095, 4096, 4097, (1 << 18) - 1, 1 << 18, (1 << 18) + 1, (1 << 20) + 5]


# --- the cipher ---------------------------------------------------------------------------------


def aes(key: bytes, blocks: bytes) -> bytes:
    return Cipher(algorithms.AES256(key), modes.ECB()).encryptor().update(blocks)


def test_the_cipher_is_aes_256() -> None:
    """FIPS 197, appendix C.3; and the first block of SP 800-38A, F.1.5."""
    key = bytes(range(32))
    assert (
        aes(key, bytes.fromhex("00112233445566778899aabbccddeeff")).hex()
        == "8ea2b7ca516745bfeafc49904b496089"
    )
    key = bytes.fromhex("603deb1015ca71be2b73aef0857d77811f352c073b6108d72d9810a30914dff4")
    assert (
        aes(key, bytes.fromhex("6bc1bee22e409f96e93d7e117393172a")).hex()
        == "f3eed1bdb5d2a03c064b5a7e3db181f8"
    )


@pytest.mark.parametrize("size", SIZES)
def test_the_keystream_encrypts_a_counter_from_zero(size: int) -> None:
    key = os.urandom(32)
    counters = b"".join(i.to_bytes(16, "big") for i in range(-(-size // 16)))
    assert bytes(_encrypt_zeros(_keystream(key), size)) == aes(key, counters)[:size]


def test_a_continued_keystream_skips_and_repeats_nothing() -> None:
    key = os.urandom(32)
    stream = _keystream(key)
    pieces = [bytes(_encrypt_zeros(stream, size)) for size in (1, 15, 17, 4096, 0, 300_001)]
    whole = bytes(_encrypt_zeros(_keystream(key), sum(map(len, pieces))))
    assert b"".join(pieces) == whole


# --- the system's source ------------------------------------------------------------------------


@pytest.mark.parametrize("size", SIZES)
def test_every_request_has_its_length(size: int) -> None:
    assert len(noise.SYSTEM.bytes(size)) == size
    assert noise.SYSTEM.words(size).shape == (size,)


def test_a_large_request_takes_one_fresh_key_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    urandom, taken = os.urandom, []

    def record(count: int) -> bytes:
        taken.append(urandom(count))
        return taken[-1]

    monkeypatch.setattr(os, "urandom", record)
    for _ in range(3):
        noise.SYSTEM.words(10_000)
        noise.SYSTEM.bytes(10_000)
    assert [len(key) for key in taken] == [32] * 6
    assert len(set(taken)) == 6
    taken.clear()
    assert noise.SYSTEM.bytes(100) == taken[0]


@pytest.mark.parametrize("words", [1, 3, 512])
def test_a_small_request_is_what_the_operating_system_gives_and_nothing_is_kept(
    words: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers = [os.urandom(8 * words) for _ in range(4)]
    left = list(answers)

    def answer(count: int) -> bytes:
        assert count == 8 * words
        return left.pop(0)

    monkeypatch.setattr(os, "urandom", answer)
    got = [noise.SYSTEM.words(words).tobytes() for _ in range(2)]
    got += [noise.SYSTEM.bytes(8 * words) for _ in range(2)]
    assert got == answers


def test_its_bits_are_fair() -> None:
    words = noise.SYSTEM.words(1 << 18)
    assert_passes(*bit_findings(words.view(np.int64), 63, 0.0))
    counts = np.bincount(words.view(np.uint8), minlength=256)
    assert_passes(chi_square("bytes", counts, np.full(256, 1 / 256)))


def test_no_word_comes_twice() -> None:
    """Among 2**20 words of 64 bits two are equal with a chance of 2**-25, below one in a million."""
    words = [noise.SYSTEM.words(size) for size in [1 << 19, *[1 << 9] * 512, *[1 << 10] * 256]]
    together = np.concatenate(words)
    assert np.unique(together).size == together.size


def test_varied_requests_leave_nothing_behind() -> None:
    """Memory kept for each size of request would add up to gigabytes."""
    held = {name: value for name, value in vars(source_module).items() if hasattr(value, "cache_info")}
    assert held == {}


def test_the_system_source_has_no_state() -> None:
    assert vars(noise.SYSTEM) == {}
    assert repr(noise.SYSTEM) == "SYSTEM"
    assert isinstance(pickle.loads(pickle.dumps(noise.SYSTEM)), type(noise.SYSTEM))


DRAWS: dict[str, Callable[[], Any]] = {
    "one": lambda: [noise.discrete_laplace(2**60) for _ in range(3)],
    "many": lambda: noise.discrete_gaussian(2**100, 5000).tolist(),
    "coins": lambda: noise.bernoulli(0.5, 256).tolist(),
    "uniform": lambda: noise.uniform(2**64, 2000).tolist(),
    "ranking": lambda: noise.exponential_ranking([0] * 200, top=200).tolist(),
}


def test_seeding_others_does_not_seed_it() -> None:
    for draw in DRAWS.values():
        seen = []
        for _ in range(2):
            random.seed(1)
            np.random.seed(1)
            seen.append(draw())
        assert seen[0] != seen[1]


FORKING = """
import json, os, sys
from discreet import noise

def draws():
    return {
        "first words": noise.uniform(2**64, 3).tolist(),
        "one": [noise.discrete_laplace(2**60) for _ in range(3)],
        "many": noise.discrete_gaussian(2**100, 5000).tolist(),
        "coins": [int("".join(map(str, noise.bernoulli(0.5, 256).astype(int).tolist())), 2)],
        "uniform": noise.uniform(2**64, 2000).tolist(),
        "single words": noise.uniform(2**64, 3).tolist(),
    }

if "warm" in sys.argv:
    draws()
seen = []
if "os.fork" in sys.argv:
    pipes = []
    for _ in range(3):
        reader, writer = os.pipe()
        if os.fork() == 0:
            with os.fdopen(writer, "w") as out:
                json.dump([draws(), draws()], out)
            os._exit(0)
        os.close(writer)
        pipes.append(reader)
    seen += [draws(), draws()]
    for reader in pipes:
        with os.fdopen(reader) as answers:
            seen += json.load(answers)
        os.wait()
else:
    from concurrent.futures import ProcessPoolExecutor
    import multiprocessing
    with ProcessPoolExecutor(3, mp_context=multiprocessing.get_context("fork")) as pool:
        futures = [pool.submit(draws) for _ in range(8)]
        seen += [draws(), *(future.result() for future in futures)]
json.dump(seen, sys.stdout)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
@pytest.mark.parametrize("way", ["os.fork", "multiprocessing"])
@pytest.mark.parametrize("cache", ["warm", "cold"])
def test_a_forked_child_replays_nothing(way: str, cache: str) -> None:
    """Parent and children draw; the laws are so wide that no two draws are equal, whoever made them."""
    import json

    answer = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", FORKING, way, cache],
        capture_output=True,
        text=True,
        check=True,
    )
    seen = json.loads(answer.stdout)
    assert len(seen) >= 8
    for kind in ("first words", "one", "coins", "uniform", "single words"):
        every = [x for draws in seen for x in draws[kind]]
        assert len(set(every)) == len(every), kind
    # A deviation of 2**50: by chance, not one place in 10**11 has the same value in two of the nine.
    arrays = np.array([draws["many"] for draws in seen])
    for i in range(len(seen)):
        for j in range(i):
            assert not (arrays[i] == arrays[j]).any()


FORKING_AMONG_THREADS = """
import json, os, sys, threading
from discreet import noise

stop, seen = threading.Event(), []

def draw():
    while not stop.is_set():
        noise.uniform(2**64, 2000)
        noise.discrete_laplace(1000 + os.getpid() % 7, 2000)

threads = [threading.Thread(target=draw) for _ in range(4)]
for thread in threads:
    thread.start()
pipes = []
for k in range(12):
    reader, writer = os.pipe()
    if os.fork() == 0:
        with os.fdopen(writer, "w") as out:
            json.dump([noise.uniform(2**64), *noise.discrete_laplace(2**60 + k, 9).tolist()], out)
        os._exit(0)
    os.close(writer)
    pipes.append(reader)
    seen += [noise.uniform(2**64), *noise.discrete_laplace(2**60 + k, 9).tolist()]
for reader in pipes:
    with os.fdopen(reader) as answers:
        seen += json.load(answers)
    os.wait()
stop.set()
json.dump(seen, sys.stdout)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
def test_a_child_forked_while_threads_draw_neither_hangs_nor_replays() -> None:
    import json

    answer = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", FORKING_AMONG_THREADS],
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    seen = json.loads(answer.stdout)
    assert len(set(seen)) == len(seen) == 12 * 2 * 10


def test_threads_share_nothing() -> None:
    seen: list[int] = []
    start = threading.Barrier(16)

    def draw() -> None:
        start.wait()
        mine = [noise.uniform(2**64) for _ in range(200)]
        for _ in range(20):
            mine += noise.uniform(2**64, 1000).tolist()
        seen.extend(mine)

    threads = [threading.Thread(target=draw) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    # 323,200 words: two are equal with a chance of 3 in a billion.
    assert len(set(seen)) == len(seen) == 16 * 20_200


def test_threads_may_make_one_table_at_once() -> None:
    start = threading.Barrier(32)
    sizes = []

    def draw() -> None:
        start.wait()
        sizes.append(np.abs(noise.discrete_laplace(54_321, 1000)).max())

    threads = [threading.Thread(target=draw) for _ in range(32)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(sizes) == 32


# --- randomness that can be repeated ------------------------------------------------------------


def seeded(seed: int | str = 1) -> noise.NotPrivate:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotPrivateWarning)
        return noise.NotPrivate(seed=seed)


def test_not_private_warns() -> None:
    with pytest.warns(NotPrivateWarning, match="protects nobody"):
        noise.NotPrivate(seed=1)


def test_not_private_repeats() -> None:
    def draws(source: noise.NotPrivate) -> list[Any]:
        return [
            noise.discrete_laplace(10, source=source),
            noise.discrete_gaussian(10**6, 10_000, source=source).tolist(),
            noise.bernoulli_exp(1, 100, source=source).tolist(),
            noise.exponential_ranking([0, 0, 0], top=3, size=9, source=source).tolist(),
            noise.uniform(10**30, 4, source=source).tolist(),
        ]

    assert draws(seeded(1)) == draws(seeded(1))
    assert draws(seeded(1)) != draws(seeded(2))
    assert draws(seeded("1")) != draws(seeded(1))


def test_a_seed_gives_the_same_words_on_every_machine() -> None:
    words = seeded().words(3)
    assert words.dtype == np.uint64
    assert words.tolist() == [int.from_bytes(part, "little") for part in _words_of(seeded().bytes(24))]


def test_threads_may_share_a_seeded_source() -> None:
    """Each word is given to one of them, and none is lost."""
    source, seen = seeded(), []

    def draw() -> None:
        for _ in range(100):
            seen.extend(source.words(1 << 15).tolist()[::256])

    threads = [threading.Thread(target=draw) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(seen)) == len(seen) == 8 * 100 * 128


def _words_of(stream: bytes) -> list[bytes]:
    return [stream[start : start + 8] for start in range(0, len(stream), 8)]


def test_not_private_has_the_same_law() -> None:
    coins = noise.bernoulli(0.25, 1 << 20, source=seeded())
    assert_passes(chi_square("coins", [int(coins.sum()), int((~coins).sum())], [0.25, 0.75]))


SAMPLERS: dict[str, Callable[..., Any]] = {
    "uniform": lambda **how: noise.uniform(10, **how),
    "uniform, big": lambda **how: noise.uniform(10**30, **how),
    "bernoulli": lambda **how: noise.bernoulli(0.5, **how),
    "bernoulli_exp": lambda **how: noise.bernoulli_exp(0.5, **how),
    "geometric": lambda **how: noise.geometric(5, **how),
    "discrete_laplace": lambda **how: noise.discrete_laplace(5, **how),
    "discrete_laplace, big": lambda **how: noise.discrete_laplace(2**80, **how),
    "discrete_gaussian": lambda **how: noise.discrete_gaussian(5, **how),
}
every_sampler = pytest.mark.parametrize("sample", SAMPLERS.values(), ids=SAMPLERS)


@every_sampler
def test_what_it_produced_says_so(sample: Callable[..., Any]) -> None:
    one = sample(source=seeded())
    assert type(one) is noise.NotPrivateInt
    assert repr(one) == str(one) == f"NotPrivateInt({int(one)})"
    for computed in (one + 1, 1 + one, one - 1, 1 - one, one * 2, 2 * one, -one, abs(one), one + one):
        assert type(computed) is noise.NotPrivateInt
    for computed in (one // 2, 2 // (one * 0 + 1), one % 3, 9 % (one * 0 + 1), one**2, +one, round(one)):
        assert type(computed) is noise.NotPrivateInt
    for computed in (
        one & 1,
        1 | one,
        one ^ one,
        ~one,
        one << 1,
        one >> 1,
        *divmod(one, 3),
        *divmod(9, one * 0 + 1),
    ):
        assert type(computed) is noise.NotPrivateInt
    assert (
        type(math.floor(one / 3)) is type(math.ceil(one / 3)) is type(math.trunc(one)) is noise.NotPrivateInt
    )
    for computed in (one + 0.5, one / 2, (one / 2) // 1, round(one / 2, 1)):
        assert type(computed) is noise.NotPrivateFloat
    assert type(round(one / 2)) is noise.NotPrivateInt

    many = sample(size=(2, 3), source=seeded())
    assert type(many) is noise.NotPrivateArray
    assert repr(many).startswith("NotPrivateArray(")
    many = many * 1  # coins count as 0 and 1 from here on
    for computed in (
        many + 1,
        1 - many,
        many[0],
        many[0, 0],
        many.sum(),
        many.sum(axis=0),
        many.T,
        np.abs(many),
        np.where(many > 0, many, 0),
        np.concatenate([many, np.zeros_like(many)]),
        np.array([[5, 6, 7]]) + many,
        next(iter(many.ravel())),
        many.copy(),
        many.dot(many.T),
        many[0].dot(many[1]),
        many.argmax(),
        many.argmin(axis=0),
        pickle.loads(pickle.dumps(many)),
        copy.deepcopy(many),
    ):
        assert type(computed) in MARKED


def test_what_numpy_makes_of_one_number_says_so() -> None:
    one, counts = noise.discrete_laplace(10, source=seeded()), np.arange(3)
    for computed in (
        one + counts,
        counts + one,
        counts * (one / 2),
        np.int64(2) * one,
        np.float64(2) + one,
        one - np.int64(2),
        np.abs(one),
        np.hypot(one, 1),
        np.add(counts, one, out=np.zeros(3)),
    ):
        assert type(computed) in MARKED
    assert (one + counts).tolist() == (counts + one).tolist() == [int(one) + k for k in range(3)]
    assert (np.ones(1, np.float32) + one).dtype == np.float32


def test_several_results_and_plain_arrays_that_are_written_to_say_so() -> None:
    many = noise.discrete_laplace(10, (2, 3), source=seeded())
    for computed in (
        *np.histogram(many),
        *np.divmod(many, 2),
        *np.unique(many, return_counts=True),
        *np.nonzero(many),
        (many.astype(object) / 2)[0, 0],
        np.add(many, 1, out=np.zeros((2, 3))),
        np.add(1, 1, out=np.zeros((2, 3)), where=many > 0),
        many.mean(),
        many @ np.ones(3),
    ):
        assert type(computed) in MARKED
    assert np.shape(many) == (2, 3)
    sums = counts = np.ones((2, 3), np.int64)
    sums += many
    assert type(sums) is noise.NotPrivateArray
    assert np.shares_memory(sums, counts)
    assert counts.tolist() == (many + 1).tolist()


def test_what_is_picked_is_a_number_like_any_other() -> None:
    """Code that works with SYSTEM works with a seeded source: what it picks can be a key or a parameter."""
    many = noise.discrete_laplace(10, (2, 3), source=seeded())
    assert type(many[0, 0]) is type(many.sum()) is noise.NotPrivateInt
    assert type(many.mean()) is noise.NotPrivateFloat
    assert json.dumps({"count": many[0, 0]})
    assert int(many[0, 0]) in {many[0, 0]}
    assert noise.uniform(abs(many[0, 0]) + 1) >= 0
    assert noise.exponential_ranking(many[0]).shape == (1,)


def test_a_seed_is_any_whole_number_or_text() -> None:
    with pytest.warns(NotPrivateWarning):
        assert NotPrivate(seed=np.int64(3)).bytes(8) == NotPrivate(seed=3).bytes(8)
    seeds: list[Any] = [10**5000, 1.0, True, None, b"1", Fraction(3)]
    for seed in seeds:
        with pytest.raises(InvalidInput):
            NotPrivate(seed=seed)


def test_labels_of_numbers_keep_their_kind_and_the_warning_names_the_caller() -> None:
    with pytest.warns(NotPrivateWarning) as warned:
        source = NotPrivate(seed=1)
    assert warned[0].filename == __file__
    assert type(source.label(0.5)) is noise.NotPrivateFloat
    assert type(source.label(5)) is noise.NotPrivateInt


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_child_does_not_wait_for_a_lock_that_nobody_holds() -> None:
    """A fork while another thread draws copies a lock that is taken; the child must not wait for it."""
    source = seeded()
    with source._lock:
        child = os.fork()
        if child == 0:  # pragma: no branch
            source.bytes(8)
            os._exit(0)
    for _ in range(200):
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            break
        time.sleep(0.05)
    else:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    assert done
    assert status == 0


def test_a_ranking_from_it_says_so_too() -> None:
    ranking = noise.exponential_ranking([1, 2], source=seeded())
    assert type(ranking) is noise.NotPrivateArray


@every_sampler
def test_what_the_system_produced_is_plain(sample: Callable[..., Any]) -> None:
    assert type(sample()) in (int, bool)
    assert type(sample(size=3)) is np.ndarray


@every_sampler
def test_every_sampler_uses_the_source_it_is_given_and_no_other(
    sample: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    sample(source=seeded())

    def forbidden(*_: object) -> None:
        raise AssertionError("the system's source was used")

    monkeypatch.setattr(source_module.SystemSource, "bytes", forbidden)
    monkeypatch.setattr(source_module.SystemSource, "words", forbidden)
    sample(source=seeded())
    sample(source=seeded(), size=10_000)


def test_it_cannot_be_set_for_all() -> None:
    """The only way to it is by name, at every call: no sampler has another default, none reads a setting."""
    for sampler in (
        noise.uniform,
        noise.bernoulli,
        noise.bernoulli_exp,
        noise.geometric,
        noise.discrete_laplace,
        noise.discrete_gaussian,
        noise.exponential_ranking,
    ):
        parameter = inspect.signature(sampler).parameters["source"]
        assert parameter.default is noise.SYSTEM
        assert parameter.kind is inspect.Parameter.KEYWORD_ONLY
    assert not hasattr(noise, "seed")


def test_replacing_the_public_name_changes_no_default(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(noise, "SYSTEM", seeded())
    assert type(noise.discrete_laplace(10)) is int


@pytest.mark.parametrize("seed", [True, 1.5, None, b"1"])
def test_a_seed_is_an_int_or_a_str(seed: Any) -> None:
    with pytest.raises(InvalidInput, match="seed must be"):
        noise.NotPrivate(seed=seed)
