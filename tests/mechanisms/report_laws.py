"""The laws of reports, enumerated: what tests of randomised response and of its estimates compare with."""

import math
from fractions import Fraction
from itertools import product
from math import comb

from discreet.mechanisms.response import RandomizedResponse

# Truths near chance, in the middle and near 1, with two, three and more answers.
CASES = [
    RandomizedResponse(Fraction(3, 4)),
    RandomizedResponse(Fraction(51, 100)),
    RandomizedResponse(Fraction(1, 2), 3),
    RandomizedResponse(Fraction(19, 20), 4),
]


def law(m: RandomizedResponse, answer: int) -> dict[int, Fraction]:
    return {j: m.truth if j == answer else m.lie for j in range(m.k)}


def laws_product(m: RandomizedResponse, answers: tuple[int, ...]) -> dict[tuple[int, ...], Fraction]:
    return {
        reports: math.prod((law(m, a)[r] for a, r in zip(answers, reports, strict=True)), start=Fraction(1))
        for reports in product(range(m.k), repeat=len(answers))
    }


def reports_law(n: int, ones: int, m: RandomizedResponse) -> list[Fraction]:
    """The law of how many of n people report an answer that `ones` of them have, term by term."""
    p, q = m.truth, m.lie
    chances = [Fraction(0)] * (n + 1)
    for i in range(ones + 1):
        for j in range(n - ones + 1):
            yes = comb(ones, i) * p**i * (1 - p) ** (ones - i)
            chances[i + j] += yes * comb(n - ones, j) * q**j * (1 - q) ** (n - ones - j)
    return chances
