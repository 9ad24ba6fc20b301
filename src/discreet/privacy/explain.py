"""What a guarantee means for one person, in plain words.

>>> print(explain(PureDP(1), n=10_000).summary)
Whatever is published is at most 2.72 times as likely with your data in the table as without them, and
at least 0.367 times.
"""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any

from discreet.errors import InvalidInput, Unsupported
from discreet.numbers import Exactable, decimal_text, digits_text, exact, fraction_text, probability, whole
from discreet.privacy.guarantees import GDP, ZCDP, ApproxDP, Caution, Guarantee, PureDP
from discreet.privacy.loss import PrivacyLoss
from discreet.privacy.neighbours import ADD_REMOVE, Neighbours
from discreet.privacy.pairs import grouped_delta
from discreet.privacy.posterior import Posterior, epsilon_for_shift, posterior_after, shift_bound
from discreet.privacy.reals import ball, enclose
from discreet.privacy.wording import NOT_PROMISED, WORDS, Words

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["Explanation", "explain", "least_useful_epsilon"]

_WIDTH = 104
_PRIORS = (Fraction(1, 1000), Fraction(1, 100), Fraction(1, 10), Fraction(1, 2))
# Where a delta is needed and nobody gave one: a chance in a million, or less where n asks for less.
_USUAL_DELTA = Fraction(1, 10**6)
# The share of those who did not take part that an attacker may name all the same.
_FALSE_ALARM = Fraction(1, 20)
# With as few members as this, what it means to be named is worth a sentence.
_BASE_RATE, _SURE = Fraction(1, 1000), 0.1
# A zero-concentrated promise says more than any one (epsilon, delta): it is read at these epsilons besides.
_READ_AT = (0, Fraction(1, 2), 1, Fraction(3, 2), 2, 3, 4, 6, 8)
# Beliefs are described but for this many times delta: at delta itself a promise allows a loss of any size.
_FAILURES = 10


@dataclass(frozen=True)
class Explanation:
    """What a guarantee means, as figures and as paragraphs; `print` it, or `plot` it.

    Claim: every figure is rounded to the side on which less is promised: what an attacker can do, up.
    """

    guarantee: Guarantee
    promise: ApproxDP
    loss: PrivacyLoss
    n: int | None
    priors: tuple[Fraction, ...]
    cautions: tuple[Caution, ...]
    neighbours: Neighbours = ADD_REMOVE

    @property
    def summary(self) -> str:
        """The promise in one sentence."""
        epsilon, delta = self.promise.figures()
        if not epsilon and not delta:
            return _fill(
                "Whatever is published is exactly as likely with your data in the table as "
                f"{self._words.without}: nothing is said about you at all."
            )
        if not delta:
            return _fill(
                f"Whatever is published is at most {_factor(epsilon)} times as likely with your data in the "
                f"table as {self._words.without}, and at least {_factor(-epsilon)} times."
            )
        return _fill(
            f"Whatever set of results one looks at, it is at most {_factor(epsilon)} times as likely with "
            f"your data in the table as {self._words.without}, plus {_up(delta)}; and the other way round."
        )

    @property
    def failure(self) -> Fraction:
        """The chance with which a belief may leave its interval towards the truth: ten times delta.

        Claim: away from the truth it leaves it no more often. The chance is over the noise, for someone who
        knows all the others, and else over the noise and their guesses about the others. At delta itself
        nothing could be said: a promise with delta allows any loss at least that often.
        """
        return min(Fraction(1, 2), _FAILURES * self.promise.delta)

    @cached_property
    def moved(self) -> float:
        """A loss that is exceeded with a chance of at most `failure`; infinite where none is known."""
        return self.loss.within(self.failure)

    @property
    def posteriors(self) -> tuple[tuple[Fraction, Posterior], ...]:
        """Each prior with the interval in which the posterior stays, but for `failure`."""
        return tuple((prior, posterior_after(self.moved, prior)) for prior in self.priors)

    @cached_property
    def best_guess(self) -> Fraction:
        """The best chance of guessing rightly whether someone took part, from even odds; rounded up."""
        least = min(exact(loss.advantage, "advantage") for loss in self._losses)
        return min(Fraction(1), (1 + least) / 2)

    @cached_property
    def caught(self) -> Fraction:
        """The most of those who took part that an attacker can name who names one in twenty of the others."""
        return 1 - self.missed(_FALSE_ALARM)

    def missed(self, fpr: Exactable) -> Fraction:
        """The least share of those who took part that any attacker misses who names `fpr` of the others."""
        return max(exact(loss.tradeoff(fpr), "missed") for loss in self._losses)

    @cached_property
    def _losses(self) -> tuple[PrivacyLoss, ...]:
        """Losses that all follow from the guarantee: a figure is that of whichever says most."""
        if not isinstance(self.guarantee, ZCDP) or not self.guarantee.rho:
            return (self.loss,)
        found = [self.loss]
        for epsilon in _READ_AT:
            with suppress(Unsupported):
                found.append(self.guarantee.to(ApproxDP, epsilon=epsilon).loss())
        return tuple(found)

    @property
    def shift(self) -> float:
        """The most that any posterior can differ from its prior, but for `failure`."""
        return shift_bound(self.moved)

    def sections(self) -> dict[str, str]:
        """Return the paragraphs under their headings."""
        return {
            "In one sentence": self.summary,
            "What someone could come to believe about you": self._beliefs(),
            self._words.attack: self._attack(),
            "What is learned beyond what the others teach": self._simulation(),
            "You and others together": self._groups(),
            "What it does not promise": NOT_PROMISED,
            **({"What it leaves to be learned": self._utility(self.n)} if self.n is not None else {}),
            **({"Take care": "\n\n".join(_fill(str(c)) for c in self.cautions)} if self.cautions else {}),
        }

    def to_dict(self) -> dict[str, Any]:
        """Return the figures and paragraphs as plain values, for programs; floats err on the safe side."""
        return {
            "guarantee": repr(self.guarantee),
            "epsilon": _float_above(self.promise.epsilon),
            "delta": _float_above(self.promise.delta),
            "n": self.n,
            "neighbours": self.neighbours.kind,
            "posteriors": [{"prior": float(p), "low": b.low, "high": b.high} for p, b in self.posteriors],
            "greatest_shift": self.shift,
            "failure": _float_above(self.failure),
            "best_guess_from_even_odds": _float_above(self.best_guess),
            "true_positive_rate_at_5_percent_false": _float_above(self.caught),
            "least_useful_epsilon": None if self.n is None else float(least_useful_epsilon(self.n)),
            "cautions": [str(caution) for caution in self.cautions],
            "text": self.sections(),
        }

    def plot(self) -> Figure:
        """Draw the band of the neighbour's density, the trade-off curve, and posterior against prior."""
        from discreet.privacy.picture import draw_explanation

        return draw_explanation(self)

    def headline(self) -> str:
        """The guarantee, and how it is read here."""
        if isinstance(self.guarantee, (PureDP, ApproxDP)):
            return repr(self.guarantee)
        return f"{self.guarantee!r}, read as {self.promise!r}"

    def beside(self) -> str:
        """What the density with you is compared with, for the legend of a picture."""
        return self._words.table

    def factor(self) -> str:
        """The greatest ratio of the chances of any result, e**epsilon, rounded up."""
        return _factor(self.promise.epsilon)

    def __str__(self) -> str:
        return "\n\n".join(
            [self.headline(), *(f"{title}\n{text}" for title, text in self.sections().items())]
        )

    @property
    def _words(self) -> Words:
        return WORDS[self.neighbours.kind]

    def _beliefs(self) -> str:
        rows = [
            f"  {fraction_text(100 * prior):>7}% sure before: between {_percent(b.low, up=False)} "
            f"and {_percent(b.high)} after"
            for prior, b in self.posteriors
        ]
        but = (
            f"But for a chance of {_up(self.failure)}, over the noise and their guesses, that they come "
            f"nearer to the truth, and no greater one that they are misled further, this holds whatever "
            f"comes out."
            if self.failure
            else "This holds whatever comes out."
        )
        opening = _fill(
            "Take someone who knows everybody else's data, or whose guesses about the others do not depend "
            f"on you. Seeing the result can move how sure they are {self._words.belief} only this far:"
        )
        closing = _fill(
            f"No prior at all moves by more than {_up(100 * exact(self.shift, 'shift'))} percentage points. "
            f"{but} Conversely, if nobody's belief about anyone ever moved by more than 5 percentage points, "
            f"whatever they believed before, epsilon would be at most "
            f"{_up(epsilon_for_shift(Fraction(1, 20)))}."
        )
        return "\n".join([opening, *rows, closing])

    def _attack(self) -> str:
        said = (
            f"Toss a coin for {self._words.coin} and let the cleverest attacker, who knows all the other "
            f"rows, guess from the result: they are right at most {_percent(self.best_guess)} of the time. "
            f"If they may wrongly name one in twenty of {self._words.others}, they name at most "
            f"{_percent(self.caught)} of {self._words.those}."
        )
        # Of a promise that can give away the few, what follows would reassure falsely.
        if posterior_after(self.moved, _BASE_RATE).high > _SURE:
            return _fill(said)
        caught, others = self.caught * _BASE_RATE, _FALSE_ALARM * (1 - _BASE_RATE)
        return _fill(
            f"{said} To be named then proves little: where {self._words.few}, it is right for at most "
            f"{_percent(caught / (caught + others))} of the named."
        )

    def _simulation(self) -> str:
        epsilon, delta = self.promise.figures()
        factor, twice = _factor(epsilon), _factor(2 * epsilon)
        near = f"within a factor of {factor}, and {_up(delta)}," if delta else f"within a factor of {factor}"
        added = grouped_delta(epsilon, delta, 2)
        far = f", and {_up(added)}" if 0 < added < 1 else ""
        if added >= 1:
            reverse = "With this delta the other way round says nothing."
        else:
            reverse = (
                f"The other way round, if whoever you are some simulator that never saw your data came that "
                f"close, then exchanging your data for anyone else's would change no chance by more than "
                f"twice that epsilon: a factor of {twice}{far}."
            )
        return _fill(
            f"Run the same mechanism on the table {self._words.table}: the chances of its results are {near} "
            f"of those with you. To within that, whatever is learned about you could have been learned "
            f"without you. {reverse}"
        )

    def _groups(self) -> str:
        try:
            four = self.guarantee.group(4)
            known = isinstance(four, (PureDP, ApproxDP))
            together = _as_approx(four, None if known else self.promise.delta)
            epsilon, delta = together.figures()
            its_delta = f" and a delta of {_up(delta)}" if delta else ""
            said = f"Four of you together have an epsilon of {_up(epsilon)}{its_delta}."
        except Unsupported:
            why = (
                "delta would reach 1"
                if isinstance(self.guarantee, ApproxDP)
                else "epsilon is too large to say"
            )
            said = f"To four of you together nothing is known to be promised: their {why}."
        return _fill(
            f"The promise is to each unit alone, and weakens with the number that belong together. {said} "
            f"That is how large groups can be learned about while no single person is."
        )

    def _utility(self, n: int) -> str:
        floor = least_useful_epsilon(n)
        epsilon, delta = self.promise.figures()
        added = min(1.0, enclose(lambda: ball(n * delta) * (ball(1) / 10).exp()).upper) if delta else 0.0
        besides = f", and {_up(added)}" if delta else ""
        left = (
            "only what delta lets through could be learned"
            if self.cautions
            else "next to nothing could be learned about anything"
        )
        if epsilon >= floor:
            verdict = f"This epsilon is {_up(epsilon / floor)} times that."
        elif self.cautions:
            verdict = "This epsilon is below that, but this delta may let a lot through."
        else:
            verdict = "This epsilon is below that: the results say almost nothing about the data."
        return _fill(
            f"Below epsilon = 1/(10n) = {digits_text(floor, up=False)}, {self._words.all} the data of all "
            f"{n:,} would change no chance by more than a factor of {_factor(Fraction(1, 10))}{besides}, so "
            f"that {left}. {verdict}"
        )


def least_useful_epsilon(n: int) -> Fraction:
    """Return 1/(10n): below it n units together are promised an epsilon of a tenth, and little is learned.

    >>> least_useful_epsilon(1000)
    Fraction(1, 10000)
    """
    return Fraction(1, 10 * whole(n, "n", least=1))


def explain(
    guarantee: Guarantee | Exactable,
    *,
    delta: Exactable | None = None,
    n: int | None = None,
    priors: Sequence[Exactable] = _PRIORS,
    neighbours: Neighbours | str = ADD_REMOVE,
) -> Explanation:
    """Explain a guarantee (a number is read as a pure epsilon, or with `delta` as an approximate one).

    `neighbours` says what the promise is about: taking part, or what one's data say. `n` is the number of
    units, where it is public: it says whether delta is small enough and whether epsilon
    is large enough to learn anything. `ZCDP` and `GDP` are read as the (epsilon, delta) that follows at
    `delta`: by default one in a million, or a hundredth of 1/n where that is less.
    """
    if not isinstance(guarantee, Guarantee):
        guarantee = PureDP(guarantee) if delta is None else ApproxDP(guarantee, delta)
        delta = None
    n = None if n is None else whole(n, "n", least=1)
    if delta is None and isinstance(guarantee, (ZCDP, GDP)) and any(guarantee.figures()):
        delta = _USUAL_DELTA if n is None else min(_USUAL_DELTA, Fraction(1, 100 * n))
    promise = _as_approx(guarantee, delta)
    loss = guarantee.loss() if isinstance(guarantee, (PureDP, ApproxDP, GDP)) else promise.loss()
    listed: object = priors
    if isinstance(listed, (str, bytes)) or not isinstance(listed, Sequence) or not priors:
        raise InvalidInput("priors must be a list of at least one prior")
    believed = [probability(prior, "prior") for prior in priors]
    relation = Neighbours.of(neighbours)
    if relation.distance != 1:
        raise InvalidInput(
            "explain says what is promised to one unit; explain guarantee.group(k) for k of them together"
        )
    cautions = promise.cautions(n) if n is not None else ()
    return Explanation(guarantee, promise, loss, n, tuple(believed), cautions, relation)


def _as_approx(guarantee: Guarantee, delta: Exactable | None) -> ApproxDP:
    if delta is not None:
        return guarantee.to(ApproxDP, delta=delta)
    return guarantee if isinstance(guarantee, ApproxDP) else ApproxDP(guarantee.to(PureDP).epsilon, 0)


def _float_above(number: Fraction) -> float:
    return enclose(lambda: number).upper


def _factor(epsilon: Fraction) -> str:
    """Write e**epsilon, rounded away from 1: what a promise allows must not look smaller than it is."""
    if abs(epsilon) > 10**6:
        return f"e**{fraction_text(epsilon)}"
    # e**epsilon = 10**whole times 10**part, so that no power overflows a float.
    whole_part = math.floor(enclose(lambda: ball(epsilon) / ball(10).log()).lower)
    part = enclose(lambda: ball(epsilon).exp() / ball(10) ** whole_part)
    up = epsilon >= 0
    mantissa = digits_text(part.upper if up else part.lower, up=up)
    return decimal_text(Decimal(mantissa).scaleb(whole_part))


def _up(number: Fraction | float) -> str:
    return digits_text(number if isinstance(number, Fraction) else exact(number, "figure"), up=True)


def _percent(share: Fraction | float, *, up: bool = True) -> str:
    return f"{digits_text(100 * exact(share, 'share'), up=up)}%"


def _fill(text: str) -> str:
    return textwrap.fill(text, _WIDTH)
