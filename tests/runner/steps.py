"""Running one command of the test run, and counting what it reports."""

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
        """Runs `command` from the repository's root, passing its output on, and records the result.

        With `counting`, a function from a line of output to `Counts` or None, the step is a
        number of tests; without, it is one check. Answers whether it succeeded.
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
            # It did not compile, or a test program died before it could report.
            counts.failed = 1
        self.record(name, counts, time.monotonic() - started)
        return code == 0 and counts.failed == 0

    def failure(self, name: str, why: str):
        """Records a step that could not even be started."""
        print(f"\n=== {name}\n{why}", flush=True)
        self.record(name, Counts(failed=1), 0.0)

    def record(self, name: str, counts: Counts, seconds: float):
        """Adds a step that has been carried out."""
        self.lines.append(f"  {name:<10} {str(counts):<40} {seconds:7.1f} s")
        self.total.add(counts)


def nextest_counts(line: str):
    """Reads nextest's last line.

    >>> str(nextest_counts("     Summary [   1.2s] 9 tests run: 6 passed (1 slow), 2 failed, 1 timed out, 4 skipped"))
    '6 passed, 3 failed, 4 skipped'
    >>> nextest_counts("        PASS [   0.1s] (1/9) tests::tidy")
    """
    plain = _plain(line).strip()
    if not re.match(r"Summary \[", plain):
        return None

    def number(word: str) -> int:
        # In brackets nextest repeats some of the passed ones: `7 passed (1 slow, 1 flaky)`.
        return sum(int(it) for it in re.findall(rf"(\d+) {word}\b", re.sub(r"\([^)]*\)", "", plain)))

    return Counts(number("passed"), number("failed") + number("timed out") + number("exec failed"), number("skipped"))


def libtest_counts(line: str):
    """Reads a line of `cargo test`.

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
