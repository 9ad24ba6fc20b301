"""What a guarantee means for one person, in plain words.

>>> print(explain(PureDP(1), n=10_000).summary)
Whatever is published is at most 2.72 times as likely with your data in the table as without them, and at
least 0.368 times.
"""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from discreet.errors import InvalidInput, Unsupported
from discreet.numbers import Exactable, probability, whole
from discreet.privacy.guarantees import GDP, ZCDP, ApproxDP, Caution, Guarantee, PureDP
from discreet.privacy.loss import PrivacyLoss
from discreet.privacy.posterior import Posterior, epsilon_for_shift, posterior_after, shift_bound
from discreet.privacy.reals import ball, precision

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["Explanation", "explain"]

_WIDTH = 104
_PRIORS = (Fraction(1, 1000), Fraction(1, 100), Fraction(1, 10), Fraction(1, 2))
# Where delta is needed and nobody gave one: a chance in a million, or a hundredth of one in n.
_USUAL_DELTA = Fraction(1, 10**6)
# An alarm that is wrong this often is what an attacker is asked to work with.
_FALSE_ALARM = Fraction(1, 20)


@dataclass(frozen=True)
class Explanation:
    """What a guarantee means, as figures and as paragraphs; `print` it, or `plot` it."""

    guarantee: Guarantee
    promise: ApproxDP
    loss: PrivacyLoss
    n: int | None
    priors: tuple[Fraction, ...]
    cautions: tuple[Caution, ...]

    @property
    def summary(self) -> str:
        """The promise in one sentence."""
        epsilon, delta = self.promise.figures()
        if not delta:
            return _fill(
                f"Whatever is published is at most {_factor(epsilon)} times as likely with your data in the table "
                f"as without them, and at least {_factor(-epsilon)} times."
            )
        return _fill(
            f"Whatever set of results one looks at, it is at most {_factor(epsilon)} times as likely with your "
            f"data in the table as without them, plus {_digits(delta, up=True)}; and the other way round."
        )

    @property
    def failure(self) -> Fraction:
        """The chance, over the noise, with which the beliefs named may be exceeded: ten times delta.

        At delta itself nothing could be said: a promise with delta allows any loss that often.
        """
        return min(Fraction(1, 2), 10 * self.promise.delta)

    @property
    def posteriors(self) -> tuple[tuple[Fraction, Posterior], ...]:
        """Each prior with the interval in which the posterior stays, but for `failure`."""
        moved = self.loss.within(self.failure)
        return tuple((prior, posterior_after(moved, prior)) for prior in self.priors)

    @property
    def best_guess(self) -> float:
        """The best chance of guessing rightly whether someone took part, from even odds; rounded up."""
        return min(1.0, math.nextafter((1 + float(self.loss.advantage)) / 2, 1.0))

    @property
    def caught(self) -> float:
        """The most of those who took part that an attacker can name if one alarm in twenty may be false."""
        return min(1.0, math.nextafter(1 - float(self.loss.tradeoff(_FALSE_ALARM)), 1.0))

    @property
    def shift(self) -> float:
        """The most that any posterior can differ from its prior, but for `failure`."""
        return shift_bound(self.loss.within(self.failure))

    def sections(self) -> dict[str, str]:
        """Return the paragraphs under their headings."""
        return {
            "In one sentence": self.summary,
            "What someone could come to believe about you": self._beliefs(),
            "How well anyone could tell that you took part": self._attack(),
            "What is learned beyond what the others teach": self._simulation(),
            "You and others together": self._groups(),
            "What it does not promise": _NOT_PROMISED,
            **({"What it leaves to be learned": self._utility(self.n)} if self.n is not None else {}),
            **({"Take care": "\n\n".join(_fill(str(c)) for c in self.cautions)} if self.cautions else {}),
        }

    def to_dict(self) -> dict[str, Any]:
        """Return the figures and paragraphs as plain values, for programs."""
        return {
            "guarantee": repr(self.guarantee),
            "epsilon": float(self.promise.epsilon),
            "delta": float(self.promise.delta),
            "n": self.n,
            "posteriors": [{"prior": float(p), "low": b.low, "high": b.high} for p, b in self.posteriors],
            "failure": float(self.failure),
            "best_guess_from_even_odds": self.best_guess,
            "true_positive_rate_at_5_percent_false": self.caught,
            "cautions": [str(caution) for caution in self.cautions],
            "text": self.sections(),
        }

    def plot(self) -> Figure:
        """Draw the band of the neighbour's density, the trade-off curve, and posterior against prior."""
        from discreet.privacy.picture import draw_explanation

        return draw_explanation(self)

    @property
    def heading(self) -> str:
        """The guarantee, and the (epsilon, delta) it is read as where it is of another kind."""
        plain = isinstance(self.guarantee, (PureDP, ApproxDP))
        return repr(self.guarantee) if plain else f"{self.guarantee!r}, read as {self.promise!r}"

    def __str__(self) -> str:
        return "\n\n".join([self.heading, *(f"{title}\n{text}" for title, text in self.sections().items())])

    def _beliefs(self) -> str:
        rows = [
            f"  {_percent(prior):>8} sure before: between {_percent(b.low, up=False)} and {_percent(b.high)} after"
            for prior, b in self.posteriors
        ]
        but = (
            f" But for a chance of {_digits(self.failure, up=True)} over the noise, this holds whatever comes out."
            if self.failure
            else " This holds whatever comes out."
        )
        opening = _fill(
            "However much they know already, about you and about everybody else, seeing the result can move "
            "what they believe about you only this far:" 
        )
        closing = _fill(
            f"No prior at all moves by more than {_percent(self.shift)}.{but} Conversely, if nobody's belief "
            f"about anyone ever moved by more than {_percent(Fraction(1, 20))}, epsilon would be at most "
            f"{_digits(epsilon_for_shift(Fraction(1, 20)), up=True)}."
        )
        return "\n".join([opening, *rows, closing])

    def _attack(self) -> str:
        return _fill(
            f"Toss a coin for whether you are in the table and let the cleverest attacker, who knows all the "
            f"other rows, guess from the result: they are right at most {_percent(self.best_guess)} of the time. "
            f"If one of their alarms in twenty may be false, they name at most {_percent(self.caught)} of those "
            f"who did take part."
        )

    def _simulation(self) -> str:
        epsilon, delta = self.promise.figures()
        twice = _digits(2 * epsilon, up=True)
        rest = f", plus or minus {_digits(delta, up=True)}" if delta else ""
        return _fill(
            f"Run the same mechanism on the table without you: its results are within a factor of "
            f"{_factor(epsilon)} as likely{rest}. So whatever is learned about you could nearly as well have "
            f"been learned without you. The other way round, if for every person some simulator who never saw "
            f"their data came within a factor of {_factor(epsilon)}, then exchanging one person's data for "
            f"another's would change nothing by more than twice that epsilon, {twice}."
        )

    def _groups(self) -> str:
        try:
            four = self.guarantee.group(4)
            together = four if isinstance(four, (PureDP, ApproxDP)) else four.to(ApproxDP, delta=self.promise.delta)
            epsilon, delta = _as_approx(together, None).figures()
            its_delta = f" and a delta of {_digits(delta, up=True)}" if delta else ""
            said = f"Four of you together have an epsilon of {_digits(epsilon, up=True)}{its_delta}."
        except Unsupported:
            said = "To four of you together nothing is promised: their delta would reach 1."
        return _fill(
            f"The promise is to each unit alone, and weakens with the number that belong together. {said} "
            f"That is how large groups can be learned about while no single person is."
        )

    def _utility(self, n: int) -> str:
        floor = Fraction(1, 10 * n)
        epsilon = self.promise.epsilon
        verdict = (
            "This epsilon is below that: the results say almost nothing about the data."
            if epsilon < floor
            else f"This epsilon is {_digits(epsilon / floor, up=True)} times that."
        )
        return _fill(
            f"Below epsilon = 1/(10n) = {_digits(floor, up=False)}, exchanging the data of all {n:,} would change no chance "
            f"by more than a factor of {_factor(Fraction(1, 10))}, so that nothing could be learned about "
            f"anything. {verdict}"
        )


_NOT_PROMISED = textwrap.dedent(
    """\
    - That nothing will be learned about you. A survey that shows that smoking causes cancer harms a smoker
      who never took part in it: what is true of people like you can be learned without you.
    - That your data are safe where they are not tied to you. If what one person contributed is spread over
      many rows and a row is the unit, it is the row that is protected, not the person.
    - Anything about what is published without noise, or about other releases from the same data: their
      losses add up, and belong in one budget.
    - That what you say elsewhere, or what others say about you, stays secret."""
)


def explain(
    guarantee: Guarantee | Exactable,
    *,
    delta: Exactable | None = None,
    n: int | None = None,
    priors: Sequence[Exactable] = _PRIORS,
) -> Explanation:
    """Explain a guarantee (a number is read as a pure epsilon, or with `delta` as an approximate one).

    `n` is the number of units, where it is public: it says whether delta is small enough and whether epsilon is
    large enough to learn anything. `ZCDP` and `GDP` are read as the (epsilon, delta) that follows at
    `delta`, by default one in a million.
    """
    if not isinstance(guarantee, Guarantee):
        guarantee = PureDP(guarantee) if delta is None else ApproxDP(guarantee, delta)
        delta = None
    n = None if n is None else whole(n, "n", least=1)
    promise = _as_approx(guarantee, delta)
    loss = guarantee.loss() if isinstance(guarantee, (PureDP, ApproxDP, GDP)) else promise.loss()
    believed = [probability(prior, "prior") for prior in priors]
    if not believed:
        raise InvalidInput("give at least one prior")
    cautions = promise.cautions(n) if n is not None else ()
    return Explanation(guarantee, promise, loss, n, tuple(believed), cautions)


def _as_approx(guarantee: Guarantee, delta: Exactable | None) -> ApproxDP:
    if delta is not None:
        return guarantee.to(ApproxDP, delta=delta)
    if isinstance(guarantee, ApproxDP):
        return guarantee
    if isinstance(guarantee, (ZCDP, GDP)) and guarantee.figures() != (0,):
        return guarantee.to(ApproxDP, delta=_USUAL_DELTA)
    return ApproxDP(guarantee.to(PureDP).epsilon, 0)


def _factor(epsilon: Fraction) -> str:
    """Write e**epsilon, rounded away from 1: what a promise allows must not look smaller than it is."""
    with precision(128):
        power = ball(epsilon).exp()
        mantissa = Decimal(str((power if epsilon > 0 else 1 / power).upper().str(30, radius=False)))
    return _digits(mantissa, up=True) if epsilon >= 0 else _digits(1 / mantissa, up=False)


def _percent(share: Fraction | float, *, up: bool = True) -> str:
    return f"{_digits(Fraction(share) * 100, up=up)}%"


def _digits(number: Fraction | float | Decimal, *, up: bool) -> str:
    """Write three significant digits, rounded up or down."""
    exact = Fraction(number)
    context = Context(prec=3, rounding=ROUND_CEILING if up else ROUND_FLOOR)
    short = context.divide(Decimal(exact.numerator), Decimal(exact.denominator))
    short = short.normalize(context)
    return f"{short:f}" if not short or -5 <= short.adjusted() < 7 else f"{short:e}"


def _fill(text: str) -> str:
    return textwrap.fill(text, _WIDTH)
