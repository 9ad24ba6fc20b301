"""How long `import discreet` takes beyond starting Python, beside rivals. Limit: 0.25 s."""

import subprocess
import sys
from collections.abc import Callable
from importlib.util import find_spec

from bench._common import race, report, typical

LIMIT = 0.25
ROUNDS = 25


def start(statement: str) -> Callable[[], object]:
    command = [sys.executable, "-c", statement]
    return lambda: subprocess.run(command, check=True, stdin=subprocess.DEVNULL)


def main() -> int:
    libraries = [name for name in ("discreet", "numpy", "opendp", "diffprivlib") if find_spec(name)]
    contenders = {"bare Python": start("pass")} | {name: start(f"import {name}") for name in libraries}
    # `import discreet` puts off nearly everything; this is what the first question then pays for.
    contenders["discreet, its rooms loaded"] = start(
        "import discreet; discreet.privacy; discreet.noise; discreet.mechanisms"
    )
    times = typical(race(contenders, rounds=ROUNDS))
    bare = times.pop("bare Python")
    ours = times["discreet"] - bare

    rows = [["bare Python", f"{1e3 * bare:.0f} ms", "", ""]]
    for name, seconds in sorted(times.items(), key=lambda item: item[1]):
        beyond = seconds - bare
        rows.append([name, f"{1e3 * seconds:.0f} ms", f"{1e3 * beyond:.1f} ms", f"{beyond / ours:.1f}"])
    report(
        f"Import time: the median of {ROUNDS} fresh processes",
        ["import", "process", "beyond bare Python", "times discreet's"],
        rows,
        ["discreet", "numpy", "opendp", "diffprivlib"],
    )
    verdict = "within" if ours < LIMIT else "OVER"
    print(f"`import discreet` is {verdict} its limit of {1e3 * LIMIT:.0f} ms beyond starting Python.")
    return 0 if ours < LIMIT else 1


if __name__ == "__main__":
    sys.exit(main())
