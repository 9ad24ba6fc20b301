import pytest

from discreet.errors import InvalidInput
from discreet.privacy import PureDP, Released


def test_a_mapped_value_keeps_its_guarantee() -> None:
    released = Released([3, 5], PureDP(0.1)).map(sum).map(str)
    assert released == Released("8", PureDP(0.1))


def test_what_is_no_promise_is_refused() -> None:
    with pytest.raises(InvalidInput, match="promise"):
        Released(5, "hello")  # type: ignore[arg-type]
