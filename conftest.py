"""Which tests run, what was left out, and every example in the documents run as a test."""

from collections import Counter
from collections.abc import Iterable
from doctest import ELLIPSIS
from pathlib import Path

import pytest
from _pytest._code.code import TerminalRepr, TracebackStyle
from hypothesis import settings
from sybil import Document, Region, Sybil
from sybil.evaluators.doctest import DocTestEvaluator
from sybil.example import SybilFailure
from sybil.parsers.abstract.doctest import DocTestStringParser
from sybil.parsers.markdown import CodeBlockParser, PythonCodeBlockParser, SkipParser

# Loaded before pytest collects examples from their files, of which it would otherwise make second copies.
import discreet.noise
import discreet.privacy  # noqa: F401

# A test with one of these marks is left out unless asked for; what to type to run it is said at the end.
NEEDS = {
    "rivals": "make test-rivals",
    "server": "make test WITH=server",
    "java": "make test WITH=java",
}
RUNS_ANYWAY = {"slow": "make test"}

# A busy machine is not a failure. A failing example prints what reproduces it anywhere.
settings.register_profile("discreet", deadline=None, print_blob=True)
settings.load_profile("discreet")

# Parts of the site's build, whose libraries .venv need not have.
collect_ignore = ["docs/mathml.py", "docs/sessions.py"]


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("discreet")
    group.addoption("--with", action="append", default=[], choices=NEEDS, help="run tests that need this")
    group.addoption(
        "--without", action="append", default=[], choices=RUNS_ANYWAY, help="leave these tests out"
    )


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    left_out = {mark: how for mark, how in NEEDS.items() if mark not in config.getoption("--with")}
    left_out |= {mark: RUNS_ANYWAY[mark] for mark in config.getoption("--without")}
    for item in items:
        for mark, how in left_out.items():
            if item.get_closest_marker(mark):
                item.add_marker(pytest.mark.skip(reason=f"marked {mark}; to run: {how}"))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    # Skips travel back from the parallel workers as reports, which a count of deselected tests would not.
    reasons = Counter(report.longrepr[2] for report in terminalreporter.stats.get("skipped", []))
    terminalreporter.section("left out")
    for reason, count in sorted(reasons.items()):
        terminalreporter.line(f"{count:5} {reason.removeprefix('Skipped: ')}")
    for mark in NEEDS:
        if not any(f"marked {mark};" in reason for reason in reasons):
            terminalreporter.line(f"    0 marked {mark}")


class SessionParser:
    """Sybil runs ```python blocks, sessions or not, but would pass over ```pycon without a word."""

    blocks = CodeBlockParser("pycon", lambda example: None)
    sessions = DocTestStringParser(DocTestEvaluator(ELLIPSIS))

    def __call__(self, document: Document) -> Iterable[Region]:
        for block in self.blocks(document):
            for region in self.sessions(block.parsed, document.path):
                region.adjust(block, block.parsed)
                yield region


EXAMPLES = Sybil(parsers=[PythonCodeBlockParser(doctest_optionflags=ELLIPSIS), SessionParser(), SkipParser()])


class Page(pytest.File):
    """A Markdown page as one test: its blocks share their names, so parallel workers must not divide them."""

    def collect(self) -> Iterable[pytest.Item]:
        if any(EXAMPLES.parse(self.path).examples()):
            yield PageExamples.from_parent(self, name="examples")


class PageExamples(pytest.Item):
    def runtest(self) -> None:
        for example in EXAMPLES.parse(self.path).examples():
            example.evaluate()

    def repr_failure(
        self, excinfo: pytest.ExceptionInfo[BaseException], style: TracebackStyle | None = None
    ) -> str | TerminalRepr:
        # A wrong output speaks for itself and names its line; anything else needs its traceback.
        if isinstance(excinfo.value, SybilFailure):
            return str(excinfo.value)
        return super().repr_failure(excinfo, style)


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> Page | None:
    return Page.from_parent(parent, path=file_path) if file_path.suffix == ".md" else None
