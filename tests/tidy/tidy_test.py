#!/usr/bin/env python3
"""The rules of the repository that a script can see. Prints every breach as file:line: rule, and fails when there is one.

Usage: tidy_test.py SOURCE_DIR
"""

import os
import re
import subprocess
import sys

# What a folder may include beside itself; the order of the layers is in ARCHITECTURE.md.
LAYERS = {
    "base": set(),
    "emulator": {"base"},
    "kernels": {"base"},
    "tuning": {"base", "kernels"},
    "store": {"base"},
    "server": {"base", "kernels", "store"},
    "worker": {"base", "kernels"},
    # The command line shows what the sandbox says of the machine and applies the gate's rule.
    "client": {"base", "kernels", "server/gate", "worker/sandbox"},
    "tests": {"base", "emulator", "kernels", "tuning", "store", "server", "worker", "client"},
}

# Third-party headers that only some folders may know.
OWNED_HEADERS = [
    (re.compile(r'[<"]sqlite3\.h[>"]'), ("store/sqlite/",)),
    (re.compile(r'[<"]seccomp\.h[>"]'), ("worker/sandbox/", "worker/guest/")),
    (re.compile(r'[<"](cuda|nvrtc|nvml)[a-z_]*\.h[>"]'), ("worker/backend/cuda/", "worker/builder/")),
]

# Calls that go through an interface of base/ instead.
BANNED = [
    (re.compile(r"\b(std::)?(rand|srand|system|popen|tmpnam|mktemp)\s*\("), "banned call",
     ("kernels/testing/", "emulator/ops/mma_reference_test.cc")),  # starts programs to compare with
    # Clock::SleepFor is the way. The kill test waits for a random moment; a cgroup cannot be waited for.
    (re.compile(r"(?<!->)\b(usleep|nanosleep|sleep_for|SleepFor)\s*\("), "sleeping outside base/clock",
     ("base/clock", "client/cli/", "store/sqlite/kill_test.cc", "worker/sandbox/cgroup.cc", "tests/")),
    (re.compile(r"\bstd::(regex)\b"), "std::regex overflows the stack on hostile text", ()),
    (re.compile(r"\b(TODO|FIXME|XXX)\b"), "unfinished work", ()),
    (re.compile(r"\.detach\(\)"), "detached thread",
     # Waits in a read for the worker's death, which ends the process; nobody could join it.
     ("worker/runner/runner_main.cc",)),
]

# Where reasons are documented, and upper-case words of the sources that are none.
REASONS = "proto/README.md"
NOT_REASONS = {
    "ASSAY_CUDA_DRIVER", "ASSAY_SERVER", "ASSAY_TLS_CA", "ASSAY_TOKEN", "CUDA_DEVICE_ORDER", "CUDA_VISIBLE_DEVICES", "HOME", "NO_COLOR", "TMPDIR", "XDG_CACHE_HOME", "XDG_STATE_HOME",  # environment
    "BEGIN", "COMMIT", "ROLLBACK",  # SQL
    "BUILD", "MEASURE",  # stages
    "ALL", "CPP", "DRAM", "NULL", "RANKED", "RLIMIT_AS", "SHA256", "SIG",
    "NONE", "UNKNOWN", "WARP_SZ",  # of the emulator
    "STANDING", "WEAKER", "MISSING",  # states of walls
}

LINES_MAX = 600
LONG_FILES = set()

def tracked(root):
    out = subprocess.run(["git", "-C", root, "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
                         stdout=subprocess.PIPE, check=True).stdout.decode()
    return sorted(path for path in out.split("\0") if path and os.path.exists(os.path.join(root, path)))


def is_candidate(path):
    """Sources that candidates bring: hostile or tuned on purpose, outside the rules of the service."""
    return path.startswith(("kernels/problems/", "tests/candidates/", "tests/adversarial/", "tests/fuzz/corpus/"))


def check_cpp(path, lines):
    folder = path.split("/")[0]
    test = path.endswith("_test.cc") or "/testing/" in path or path.startswith("tests/")
    if path.endswith(".h"):
        guard = "ASSAY_" + re.sub(r"[/.]", "_", path).upper() + "_"
        if not any(line.strip() == "#ifndef " + guard for line in lines):
            yield 1, "header guard is not " + guard
        if not lines[0].startswith("//"):
            yield 1, "a header starts with a comment on its role"
    if len(lines) > LINES_MAX and path not in LONG_FILES:
        yield len(lines), "longer than %d lines: split it by meaning" % LINES_MAX
    for number, line in enumerate(lines, 1):
        include = re.match(r'#include "([^"]+)"', line)
        if include and folder in LAYERS:
            target = include.group(1)
            top = target.split("/")[0]
            if top in LAYERS and top != folder:
                allowed = LAYERS[folder] | ({"store", "server", "worker"} if test and folder == "tests" else set())
                if not any(target.startswith(prefix + "/") for prefix in allowed):
                    yield number, "%s/ must not include %s" % (folder, target)
        for pattern, owners in OWNED_HEADERS:
            if line.startswith("#include") and pattern.search(line) and not path.startswith(owners):
                yield number, "only %s may include this" % ", ".join(owners)
        for pattern, rule, exempt in BANNED:
            if pattern.search(line) and not (exempt and path.startswith(exempt)):
                yield number, rule
        if line.startswith("using namespace "):
            yield number, "using namespace"
        if test and re.search(r"EXPECT_TRUE\(true\)|SUCCEED\(\)", line):
            yield number, "a test that cannot fail"


def check_proto(path, lines):
    """Every field has a comment above it, at its end, or belongs to a group whose first line has one."""
    documented = False
    for number, line in enumerate(lines, 1):
        text = line.strip()
        if text.startswith("//"):
            documented = True
            continue
        if re.match(r"enum \w+ \{", text):
            body = "".join(lines[number:number + 12])
            zero = re.search(r"(\w+) = 0;", body)
            if not zero or not zero.group(1).endswith("_UNSPECIFIED"):
                yield number, "the zero value of an enum ends in _UNSPECIFIED"
        if not text:
            documented = False


def check_text(path, lines):
    for number, line in enumerate(lines, 1):
        if re.search(r"(^|[^A-Za-z0-9_.])/(work|farm)/", line):
            yield number, "path of a particular machine"
        if "\t" in line and not path.endswith(("Makefile", ".tsv")):
            yield number, "tab"
        if line.rstrip("\n") != line.rstrip("\n").rstrip():
            yield number, "blank at the end of the line"


def check_reasons(root, paths):
    """Every reason of the sources stands in proto/README.md, and every one of its tables in the sources."""
    used = {}
    for path in paths:
        if (not path.endswith((".cc", ".h")) or is_candidate(path) or path.startswith(("tests/", "emulator/suite/"))
                or path.endswith(("_test.cc", "_bench.cc")) or "/testing/" in path or "fixture" in path):
            continue
        with open(os.path.join(root, path), encoding="utf-8") as file:
            for number, line in enumerate(file, 1):
                for word in re.findall(r'"([A-Z][A-Z0-9_]{2,})"', line):
                    used.setdefault(word, (path, number))
    with open(os.path.join(root, REASONS), encoding="utf-8") as file:
        lines = file.readlines()
    documented = set(re.findall(r"\b[A-Z][A-Z0-9_]+\b", "".join(lines)))
    for word in sorted(set(used) - documented - NOT_REASONS):
        yield used[word] + ("the reason %s is not in %s (or belongs to NOT_REASONS of the tidy test)" % (word, REASONS),)
    for word in sorted(NOT_REASONS - set(used) | NOT_REASONS & documented):
        yield "tests/tidy/tidy_test.py", 1, "NOT_REASONS need not have " + word
    in_table = False
    for number, line in enumerate(lines, 1):
        in_table = line.startswith("| reason |") or (in_table and line.startswith("|"))
        if not in_table or line.startswith(("| reason |", "|---")):
            continue
        for word in line.split("|")[1].split(","):
            if word.strip() not in used:
                yield REASONS, number, "no source has the reason " + word.strip()


def main():
    root = sys.argv[1]
    breaches = []
    checked = 0
    for path in tracked(root):
        if path.endswith((".png", ".gz", ".bin")) or os.path.islink(os.path.join(root, path)):
            continue
        with open(os.path.join(root, path), encoding="utf-8", errors="replace") as file:
            lines = file.readlines()
        if not lines:
            breaches.append((path, 1, "empty file"))
            continue
        checked += 1
        rules = []
        if not is_candidate(path):
            rules.append(check_text(path, lines))
            if path.endswith((".h", ".cc")):
                rules.append(check_cpp(path, lines))
        if path.endswith(".proto"):
            rules.append(check_proto(path, lines))
        for rule in rules:
            breaches.extend((path, number, text) for number, text in rule)
        if (path.startswith("scripts/") and "." not in os.path.basename(path)
                and not os.access(os.path.join(root, path), os.X_OK)):
            breaches.append((path, 1, "not executable"))
    breaches.extend(check_reasons(root, tracked(root)))
    for path, number, text in breaches:
        print("%s:%d: %s" % (path, number, text))
    if checked < 20:
        print("only %d files found: is %s the source folder?" % (checked, root))
        return 1
    print("%d files checked, %d breaches" % (checked, len(breaches)))
    return 1 if breaches else 0


if __name__ == "__main__":
    sys.exit(main())
