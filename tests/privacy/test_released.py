from discreet.privacy import PureDP, Released


def test_a_mapped_value_keeps_its_guarantee() -> None:
    released = Released([3, 5], PureDP(0.1)).map(sum).map(str)
    assert released == Released("8", PureDP(0.1))
