"""Writing a picture to a file that was named on a command line."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["check", "save"]

_KINDS = (".png", ".svg", ".pdf", ".jpg", ".jpeg")


def check(path: Path) -> None:
    """Refuse a file whose name does not say what kind of picture it is."""
    from discreet.errors import InvalidInput

    if path.suffix.lower() not in _KINDS:
        raise InvalidInput(
            f"a picture is written to a file that ends in one of {', '.join(_KINDS)}, not {path}"
        )


def save(draw: Callable[[], "Figure"], path: Path) -> None:
    """Draw a picture and write it to `path`, under no other name, or refuse with a reason."""
    from discreet.errors import DiscreetError, InvalidInput

    check(path)
    try:
        draw().savefig(path, dpi=150)
    except DiscreetError:
        raise
    except (OSError, ValueError, RuntimeError) as error:
        raise InvalidInput(f"cannot write a picture to {path}: {error}") from error
