"""Runs the commands of a test run and counts their results."""

import re
import subprocess
import sys
import time
from dataclasses import dataclass, field


@dataclass
class Counts:
    """Results of tests; a check such as the formatting counts as one test."""

    passed: int = 0
    failed: int = 0
    skipped: int = 0

    def add(self, other: "Counts"):
        self.passed += other.passed
        self.failed += other.failed
        self.skipped += other.skipped

    def __str__(self):
        skipped = f", {self.skipped} skipped" if self.skipped else ""
        return f"{self.passed} passed, {self.failed} failed{skipped}"


@dataclass
class Report:
    """All steps of the run so far, in order."""

    lines: list = field(default_factory=list)
    total: Counts = field(default_factory=Counts)

    def step(self, name: str, command: list, environment: dict, counting=None) -> bool:
        """Runs `command` in the root of the repository, prints its output, and records the result.

        `counting` converts a line of output to `Counts` or `None`. Without it, the step counts as one
        check. Returns whether the step succeeded.
        """
        print(f"\n=== {name}: {' '.join(map(str, command))}", flush=True)
        started = time.monotonic()
        counts = Counts()

        def read(line: str):
            found = counting(line) if counting else None
            if found:
                counts.add(found)

        code = _stream(command, environment, read)
        if counting is None:
            counts = Counts(passed=int(code == 0), failed=int(code != 0))
        elif code != 0 and counts.failed == 0:
            # The code did not compile, or a test program died before it reported results.
            counts.failed = 1
        self.record(name, counts, time.monotonic() - started)
        return code == 0 and counts.failed == 0

    def failure(self, name: str, why: str):
        """Records a step that could not be started."""
        print(f"\n=== {name}\n{why}", flush=True)
        self.record(name, Counts(failed=1), 0.0)

    def record(self, name: str, counts: Counts, seconds: float):
        """Adds a finished step."""
        self.lines.append(f"  {name:<10} {str(counts):<40} {seconds:7.1f} s")
        self.total.add(counts)


def nextest_counts(line: str):
    """Parses the summary line of nextest; returns `None` for any other line.

    >>> str(nextest_counts("     Summary [   1.2s] 9 tests run: 6 passed (1 slow), 2 failed, 1 timed out, 4 skipped"))
    '6 passed, 3 failed, 4 skipped'
    >>> nextest_counts("        PASS [   0.1s] (1/9) tests::tidy")
    """
    plain = _plain(line).strip()
    if not re.match(r"Summary \[", plain):
        return None

    def number(word: str) -> int:
        # The numbers in brackets are part of the number of passed tests: `7 passed (1 slow, 1 flaky)`.
        return sum(int(it) for it in re.findall(rf"(\d+) {word}\b", re.sub(r"\([^)]*\)", "", plain)))

    return Counts(number("passed"), number("failed") + number("timed out") + number("exec failed"), number("skipped"))


def libtest_counts(line: str):
    """Parses the result line of `cargo test`; returns `None` for any other line.

    >>> str(libtest_counts("test result: ok. 5 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out"))
    '5 passed, 0 failed, 1 skipped'
    """
    found = re.match(r"test result: \w+\. (\d+) passed; (\d+) failed; (\d+) ignored", _plain(line))
    return Counts(*map(int, found.groups())) if found else None


def _plain(line: str) -> str:
    return re.sub(r"\x1b\[[0-9;]*m", "", line)


def _stream(command: list, environment: dict, read) -> int:
    try:
        child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=environment)
    except OSError as problem:
        print(f"{command[0]} can't be run: {problem}", flush=True)
        return 127
    try:
        for raw in child.stdout:
            line = raw.decode(errors="replace")
            sys.stdout.write(line)
            sys.stdout.flush()
            read(line)
        return child.wait()
    except BaseException:
        child.terminate()
        child.wait()
        raise
