"""Randomised response: each person adds the noise to their own answer, and nobody need be trusted.

>>> coins = RandomizedResponse.two_coins(answers=["yes", "no"])     # heads: the truth; tails: a second coin
>>> coins, coins.loss().max_ratio                                   # at most 3 times as likely, either way
(RandomizedResponse(truth=0.75, answers=('yes', 'no')), Fraction(3, 1))
>>> reports = coins.release(["yes"] * 300 + ["no"] * 700)           # on the respondents' side
>>> found = coins.estimate(reports)                                 # on the collector's
>>> found.n, len(found.interval(0.95))
(1000, 2)
>>> coins.estimate(counts=[402, 598])
Estimate(n=1000; yes: 0.304 ± 0.054, no: 0.696 ± 0.054; each with 95% confidence)
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Self

import numpy as np
from flint import arb
from numpy.typing import NDArray

from discreet.errors import InvalidInput, Unsupported
from discreet.mechanisms.additive import guarantee_asked, loss_keeps
from discreet.mechanisms.answers import read_answers
from discreet.mechanisms.estimates import Estimate, read_failure, reports_variances, worst_tails
from discreet.mechanisms.search import greatest, least, least_whole
from discreet.noise import SYSTEM, Source, bernoulli, uniform
from discreet.numbers import Exactable, exact, fraction_text, nonnegative, positive, probability, whole
from discreet.privacy import ApproxDP, Guarantee, Neighbours, PrivacyLoss, PureDP
from discreet.privacy.reals import ball, enclose

__all__ = ["RandomizedResponse"]

_MOST_ANSWERS, _MOST_REPORTS = 1 << 20, 10**10
_LEAST_LIE = Fraction(1, 1 << 256)
# The loss of many questions is written out while its integers have at most this many bits together.
_MOST_LOSS_BITS = 1 << 22


@dataclass(frozen=True, repr=False)
class RandomizedResponse:
    """Reports one of k answers: the true one with probability `truth`, and each other one equally often.

    Claim: whatever the true answer, the report is it with probability exactly `truth` (all coins counted) and
    any other with probability (1 - truth) / (k - 1); reports of different answers are independent. So when
    one person's answer is replaced, the odds of any report change by a factor of truth (k - 1) / (1 - truth)
    at most, and for some report by just that. At truth = 1/k a report says nothing and nothing can be
    estimated; below, it says "not this one", which is another protocol. Both are refused, and so is 1.

    Answers are 0, ..., k - 1, or words: `answers=["yes", "no"]`.
    """

    truth: Fraction
    k: int
    answers: tuple[str, ...] | None

    def __init__(
        self, truth: Exactable, k: int | None = None, *, answers: Sequence[str] | None = None
    ) -> None:
        names, k = _read_choices(k, answers)
        chance = probability(truth, "truth")
        if not Fraction(1, k) < chance < 1:
            raise InvalidInput(
                f"truth must be above 1/{k} and below 1: at 1/{k} reports of {k} answers are pure chance and "
                "nothing can be estimated, below it they avoid the truth, and at 1 nothing is protected. "
                "RandomizedResponse.calibrate(epsilon=1) chooses one"
            )
        if 1 - chance < _LEAST_LIE:
            raise InvalidInput("truth is so close to 1 that nobody would ever lie: take a smaller one")
        for name, value in (("truth", chance), ("k", k), ("answers", names)):
            object.__setattr__(self, name, value)

    # --- how it is chosen ----------------------------------------------------------------------------

    @classmethod
    def two_coins(
        cls,
        tell: Exactable = Fraction(1, 2),
        k: int | None = None,
        *,
        answers: Sequence[str] | None = None,
    ) -> Self:
        """Return the textbook's protocol: with chance `tell` the truth, else one of all k answers at random.

        Claim: truth = tell + (1 - tell) / k, because the second throw may show the truth too.
        """
        honest = probability(tell, "tell")
        if not 0 < honest < 1:
            raise InvalidInput("tell must be above 0 and below 1: never or always the truth is no protocol")
        names, k = _read_choices(k, answers)
        return cls._with_gap(honest, k, names)

    @classmethod
    def calibrate(
        cls,
        guarantee: Guarantee | None = None,
        *,
        epsilon: Exactable | None = None,
        delta: Exactable | None = None,
        rho: Exactable | None = None,
        mu: Exactable | None = None,
        k: int | None = None,
        answers: Sequence[str] | None = None,
    ) -> Self:
        """Return the most truthful reports that keep a promise for one answer, the truth rounded down.

        Claim: (epsilon, delta) is kept just when truth is at most
        (e**epsilon + (k - 1) delta) / (e**epsilon + k - 1), so a delta adds less than itself to the truth.
        For `rho` and `mu` the truth is searched.
        """
        promise = guarantee_asked(guarantee, epsilon, delta, rho, mu)
        names, k = _read_choices(k, answers)
        if not isinstance(promise, (PureDP, ApproxDP)):

            def keeps(gap: Fraction) -> bool:
                return gap < 1 and loss_keeps(cls._with_gap(gap, k, names).loss(), promise)

            return cls._with_gap(greatest(keeps, Fraction(1, 2)), k, names)
        level, chance = (*promise.figures(), Fraction(0))[:2]

        def most() -> arb:
            shrink = (k - 1) * (-ball(level)).exp()
            return (1 + ball(chance) * shrink) / (1 + shrink)

        truth = exact(enclose(most).lower, "truth")
        if truth <= Fraction(1, k):
            raise InvalidInput(
                f"so small an epsilon leaves a truth that no float tells from 1/{k}, which is pure chance"
            )
        return cls(truth, k, answers=names)

    @classmethod
    def solve(
        cls,
        *,
        error: Exactable,
        failure: Exactable,
        n: int,
        k: int | None = None,
        answers: Sequence[str] | None = None,
    ) -> Self:
        """Return the most private reports whose estimates are good enough, for n respondents.

        That is: whatever the true answers are, an estimated proportion is off by `error` or more with
        probability at most `failure`. What it then costs is `.loss()`.
        """
        off, rare = positive(error, "error"), probability(failure, "failure")
        size, (names, k) = _respondents(n), _read_choices(k, answers)
        if rare in (0, 1):
            raise InvalidInput("failure must be above 0 and below 1: only plain answers never fail")
        if off >= 1:
            raise InvalidInput("error is that of a proportion, so it must be below 1, such as 0.03")

        def keeps(gap: Fraction) -> bool:
            if gap >= 1:
                return True
            return cls._with_gap(gap, k, names)._is_off_seldom(off * gap * size, size, rare)

        gap = least(keeps, Fraction(1, 2))
        if gap >= 1:
            raise Unsupported(
                f"{size} respondents are too few for that with any privacy: allow a larger error or failure"
            )
        return cls._with_gap(gap, k, names)

    @classmethod
    def _with_gap(cls, gap: Fraction, k: int, answers: tuple[str, ...] | None) -> Self:
        """Return reports in which the truth is more likely than another answer by `gap`."""
        return cls(gap + (1 - gap) / k, k, answers=answers)

    @property
    def lie(self) -> Fraction:
        """The probability of each answer that is not the true one."""
        return (1 - self.truth) / (self.k - 1)

    # --- release -------------------------------------------------------------------------------------

    def release(self, answers: Any, *, source: Source = SYSTEM) -> Any:
        """Randomise one true answer, or a list or an array of them, and return reports of the same kind.

        Claim: reports are independent, and each has exactly the law that the class claims.
        """
        codes = self._read(answers)
        honest = np.asarray(bernoulli(self.truth, codes.shape, source=source))
        # A liar goes 1, ..., k - 1 places on around the circle of answers: never back to the truth.
        away = np.asarray(uniform(self.k - 1, codes.shape, source=source)) + 1
        reports: Any = np.where(honest, codes, (codes + away) % self.k)
        if self.answers is not None:
            reports = np.array(self.answers)[reports]
        alike = isinstance(answers, Sequence) or not codes.shape
        return source.label(reports.tolist() if alike else reports)

    def _read(self, answers: Any) -> NDArray[np.int64]:
        """Return answers as numbers 0, ..., k - 1."""
        codes = np.zeros(0, np.int64)
        with suppress(InvalidInput, ValueError):
            codes = _read_numbers(answers) if self.answers is None else _read_names(answers, self.answers)
        if not codes.size or codes.min() < 0 or codes.max() >= self.k:
            choices = f"one of {self.answers}" if self.answers else f"a whole number from 0 to {self.k - 1}"
            raise InvalidInput(
                f"every answer must be {choices}, alone or in a list or an array, and here is something "
                "else, or nothing. To report words name them all, with one for answers that do not fit: "
                "RandomizedResponse.two_coins(answers=['yes', 'no'])"
            )
        return codes

    # --- what it costs -------------------------------------------------------------------------------

    def loss(self, questions: int = 1, *, neighbours: Neighbours | str = "replace") -> PrivacyLoss:
        """Return the loss of one person's reports to so many questions, each randomised afresh.

        Claim: the person whose answers all change is the worst case, and their loss is d ln(truth / lie),
        where d is how many reports agree with the old answers less how many agree with the new. The law of d
        is written out exactly; only for so many questions that its fractions would fill memory is it replaced
        by the pure promise, questions * ln(truth / lie), which it keeps. Who responds is public, so
        neighbours replace one person's answers.
        """
        m = whole(questions, "questions", least=1)
        relation = Neighbours.of(neighbours)
        if relation.kind != "replace" or relation.distance != 1:
            raise Unsupported(
                "in a survey everyone reports for themselves, so who responds is public and one person's "
                "answers are replaced: neighbours='replace'. For k people together, .loss().group(k)"
            )
        common = (self.truth.denominator * (self.k - 1)).bit_length()
        if 2 * m * m * (common + 1) > _MOST_LOSS_BITS:
            return PrivacyLoss.pure(self.guarantee(m).epsilon, neighbours=relation)
        law = _difference_law(self.truth, self.lie, m)
        return PrivacyLoss.finite(law, law[::-1], neighbours=relation)

    def guarantee(self, questions: int = 1) -> PureDP:
        """Return the pure promise to a person who answers so many questions, rounded up.

        Claim: m questions cost m ln(truth / lie), and no less.
        """
        m = whole(questions, "questions", least=1)
        return PureDP(enclose(lambda: m * ball(self.truth / self.lie).log()).upper)

    # --- what is learned -----------------------------------------------------------------------------

    def estimate(self, reports: Any = None, *, counts: Sequence[int] | None = None) -> Estimate:
        """Estimate how many gave each answer, from their reports or from the `counts` of each report.

        Anything done to reports is free, so this costs no privacy.
        """
        if (reports is None) == (counts is None):
            raise InvalidInput("give the reports, or counts= of each report")
        if counts is None:
            counts = np.bincount(self._read(reports).ravel(), minlength=self.k).tolist()
        listed = isinstance(counts, Sequence) or getattr(counts, "ndim", None) == 1
        numbers = tuple(whole(count, "a count") for count in counts) if listed else ()
        if len(numbers) != self.k or not any(numbers):
            raise InvalidInput(
                f"counts must be a list that tells for each of {self.k} answers how often it was reported, "
                "in the order of the answers, and of at least one report"
            )
        _respondents(sum(numbers))
        return Estimate(self.truth, self.lie, numbers, self.answers)

    def tail(self, t: Exactable, n: int) -> float:
        """Bound the chance that an estimated proportion of n people is off by t or more, from above.

        Claim: it holds for each category and for all true answers of these n people; what is random is the
        coins. See discreet.mechanisms.estimates.worst_tails.
        """
        size, off = _respondents(n), nonnegative(t, "t")
        most = max(worst_tails(self.truth, self.lie, off * size * (self.truth - self.lie), size))
        return enclose(lambda: min(most, Fraction(1))).upper if off else 1.0

    def error(self, confidence: Exactable = 0.95, *, n: int) -> float:
        """Return e such that an estimated proportion of n people is within e, with this confidence at least.

        Before any report is seen, and for all true answers; `Estimate.error` has seen them, and is smaller.
        """
        size, rare = _respondents(n), read_failure(confidence)
        eighths = least_whole(lambda m: m > 0 and self._is_off_seldom(Fraction(m, 8), size, rare))
        return enclose(lambda: Fraction(eighths, 8 * size) / (self.truth - self.lie)).upper

    def _is_off_seldom(self, reach: Fraction, n: int, rare: Fraction) -> bool:
        """Tell whether reports of j are certain to be `reach` from their mean at most this often."""
        return all(tail <= rare for tail in worst_tails(self.truth, self.lie, reach, n))

    def expected_error(self, n: int) -> float:
        """Bound the mean error of an estimated proportion by its root mean square at worst, rounded up."""
        size, most = _respondents(n), max(reports_variances(self.truth, self.lie))
        return enclose(lambda: (ball(most) / size).sqrt() / ball(self.truth - self.lie)).upper

    def __repr__(self) -> str:
        more = f"k={self.k}" if self.answers is None else f"answers={self.answers!r}"
        return f"RandomizedResponse(truth={fraction_text(self.truth)}, {more})"


def _read_choices(k: int | None, answers: Sequence[str] | None) -> tuple[tuple[str, ...] | None, int]:
    if isinstance(k, (list, tuple)):
        raise InvalidInput("k is how many answers there are: to name them write answers=, as ['yes', 'no']")
    if answers is None:
        number = 2 if k is None else whole(k, "k", least=2)
        if number > _MOST_ANSWERS:
            raise InvalidInput(f"k must be at most {_MOST_ANSWERS}: of more answers nothing could be learned")
        return None, number
    if isinstance(answers, str) or not isinstance(answers, Sequence):
        raise InvalidInput("answers must be a list of names, such as ['yes', 'no']")
    names = tuple(answers)
    if not all(type(name) is str for name in names) or len(set(names)) != len(names) or len(names) < 2:
        raise InvalidInput("answers must be at least two different names, as strings")
    if k is not None and whole(k, "k") != len(names):
        raise InvalidInput(f"answers names {len(names)} and k says {k}: leave k out")
    return names, len(names)


def _read_numbers(answers: Any) -> NDArray[np.int64]:
    read = read_answers(answers)
    return read.values if read.whole and read.values.dtype != object else np.zeros(0, np.int64)


def _read_names(answers: Any, names: tuple[str, ...]) -> NDArray[np.int64]:
    """Return where each answer stands among the names, or -1."""
    items, places = np.asarray(answers, object), {name: place for place, name in enumerate(names)}
    if isinstance(answers, np.ma.MaskedArray):
        items = np.array(None)  # what is masked is no answer, and NumPy would hand it over
    found = [places.get(item, -1) if isinstance(item, str) else -1 for item in items.ravel().tolist()]
    return np.array(found, np.int64).reshape(items.shape)


def _respondents(n: int) -> int:
    size = whole(n, "n", least=1)
    if size > _MOST_REPORTS:
        raise Unsupported(f"at most {_MOST_REPORTS:,} respondents are counted exactly here")
    return size


def _difference_law(truth: Fraction, lie: Fraction, m: int) -> list[Fraction]:
    """Return the law of (reports that agree with old answers) - (with new ones), from m down to -m.

    The m-th power of the polynomial lie + rest x + truth x**2, worked out at a power of two so large that its
    coefficients stand side by side in the digits.
    """
    common = math.lcm(truth.denominator, lie.denominator)
    likely, rarely = int(truth * common), int(lie * common)
    room = m * common.bit_length() + 1
    digits = (rarely + (common - likely - rarely << room) + (likely << 2 * room)) ** m
    mask, total = (1 << room) - 1, common**m
    return [Fraction(digits >> place * room & mask, total) for place in range(2 * m + 1)][::-1]
