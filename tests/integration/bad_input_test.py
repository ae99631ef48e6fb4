#!/usr/bin/env python3
"""Bad input: a clear error with a stable reason, the right exit code, and a service that goes on."""

import glob
import json
import os
import subprocess
import tempfile
import unittest

import harness

# A workload of vector_add that is only verified.
VERIFY_ONLY = "prime"
CANDIDATES = os.path.join(harness.SOURCE, "tests", "candidates")


def expectations():
    """Rows of expectations.txt: path, problem, verdict, allowed reasons."""
    with open(os.path.join(CANDIDATES, "expectations.txt"), encoding="utf-8") as file:
        for line in file:
            words = line.split("#")[0].split()
            if words:
                path, problem, verdict, reasons = words
                yield path, problem, verdict, reasons.split(",")


class Admission(unittest.TestCase):
    """Refused before anything is stored: exit 2 and {"error": ...}."""

    @classmethod
    def setUpClass(cls):
        cls.service = harness.Service(worker=False)
        cls.directory = tempfile.TemporaryDirectory(prefix="assay-test.")

    @classmethod
    def tearDownClass(cls):
        cls.service.close()
        cls.directory.cleanup()

    def refused(self, reason, *words):
        code, objects = self.service.json("submit", *words)
        self.assertEqual(code, 2, objects)
        self.assertEqual(objects[0]["error"]["reason"], reason, objects)
        self.assertTrue(objects[0]["error"]["message"])

    def file(self, name, content):
        path = os.path.join(self.directory.name, name)
        with open(path, "wb") as file:
            file.write(content)
        return path

    def test_refusals(self):
        plain = harness.candidate("vector_add", "plain")
        source = self.file("bare.cc", b"void vector_add(const float*, const float*, float*, int64_t) {}\n")
        self.refused("PROBLEM_NOT_FOUND", source, "--problem", "nothing_like_this")
        self.refused("WORKLOAD_NOT_FOUND", plain, "--workload", "enormous")
        self.refused("WORKLOAD_INVALID", plain, "--workload", "n=0")
        self.refused("WORKLOAD_INVALID", plain, "--workload", "n=4,m=5")
        self.refused("WORKLOAD_INVALID", plain, "--workload", "n=9000000000000000000")
        self.refused("PATH_NOT_FOUND", os.path.join(self.directory.name, "none.cc"), "--problem", "vector_add")
        self.refused("PROBLEM_MISSING", source)
        self.refused("PROBLEM_MISMATCH", plain, "--problem", "gelu")
        self.refused("SOURCE_NOT_UTF8", self.file("bytes.cc", b"\xff\xfe\x00"), "--problem", "vector_add")
        self.refused("CANDIDATE_TOO_LARGE", self.file("big.cc", b"// " + b"x" * (1 << 20)), "--problem", "vector_add")
        self.refused("UNKNOWN_FIELD", self.file("field.cc", b'/* assay-candidate\nproblem: "vector_add"\n'
                                                            b'language: CPP\nspeed: 9\n*/\n'))
        self.refused("CANDIDATE_MALFORMED", self.file("open.cc", b'/* assay-candidate\nproblem: "vector_add\n*/\n'))
        self.refused("CONFIGURATION_INVALID", plain, "--configuration", "BLOCK=3")
        self.refused("LANGUAGE_UNSUPPORTED", self.file("kernel.cu", b'/* assay-candidate\nproblem: "vector_add"\n'
                                                                    b'language: CUDA_CPP\nplan { launches { kernel: "k" '
                                                                    b'grid: "1" block: "1" } }\n*/\n'),
                     "--device", "cpu")

    def test_usage(self):
        for words in (["submit"], ["submit", "--frobnicate"], ["frobnicate"], ["submit", "x.cc", "--level", "best"],
                      ["evaluations", "show"], ["gate", "--baseline", "x"], []):
            done = subprocess.run([os.path.join(harness.BIN, "assay"), *words], stdout=subprocess.PIPE,
                                  stderr=subprocess.PIPE, check=False)
            self.assertEqual(done.returncode, 2, words)
            self.assertTrue(done.stderr)

    def test_a_worker_starts_only_behind_the_walls_that_are_required(self):
        # On a machine that has them all there is nothing to refuse.
        code, out = self.service.cli("doctor", "--json")
        walls = {check["name"]: check for check in json.loads(out)["checks"] if check["name"].startswith("wall ")}
        self.assertEqual({wall["state"] == "STANDING" for wall in walls.values() if wall["ok"]}, {True})
        lacking = [name.split(" ")[1] for name, wall in walls.items() if wall["state"] != "STANDING"]
        for wall in lacking:
            done = subprocess.run([os.path.join(harness.BIN, "assay-worker"), "--server=" + self.service.address,
                                   "--name=walls", "--calibration=quick", "--require-wall", wall,
                                   "--state-dir=" + os.path.join(self.directory.name, "walls")],
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=120, check=False)
            self.assertEqual((done.returncode, done.stdout), (2, b""), wall)
            self.assertIn(b"WALL_MISSING", done.stderr)
            self.assertIn(wall.encode(), done.stderr)

    def test_help(self):
        for words in (["assay", "--help"], ["assay", "gate", "--help"], ["assay-server", "--help"],
                      ["assay-worker", "--help"]):
            done = subprocess.run([os.path.join(harness.BIN, words[0]), *words[1:]], stdout=subprocess.PIPE,
                                  stderr=subprocess.PIPE, check=False)
            self.assertEqual((done.returncode, done.stderr), (0, b""), words)
            self.assertTrue(done.stdout)

    def test_server_address(self):
        for address in ("", "localhost", "host:port", "http://host:1"):
            done = subprocess.run([os.path.join(harness.BIN, "assay"), "fleet", "list", "--server", address],
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
            self.assertEqual((done.returncode, done.stdout), (2, b""), address)
            self.assertEqual(done.stderr.count(b"\n"), 1, done.stderr)
            self.assertIn(b"HOST:PORT", done.stderr)

    def test_what_was_created_before_a_refusal_is_named(self):
        good = harness.candidate("vector_add", "plain")
        other = self.file("other.cc", b"void nothing_like_this(const float*) {}\n")
        words = ("submit", good, "--workload", "n=100", harness.candidate("gelu", "plain"),
                 harness.candidate("gemm_f32", "plain"))
        code, objects = self.service.json(*words)
        self.assertEqual(code, 2)
        self.assertEqual([list(o)[0] for o in objects[-1:]], ["error"])
        self.assertEqual(objects[-1]["error"]["reason"], "WORKLOAD_INVALID")
        self.assertIn("gemm_f32", objects[-1]["error"]["message"])
        self.assertEqual([o["problem"] for o in objects[:-1]], ["problems/vector_add", "problems/gelu"])
        for created in objects[:-1]:
            self.assertEqual(self.service.cli("evaluations", "show", created["name"])[0], 0)
        code, out = self.service.cli(*words)
        self.assertEqual((code, out.count("evaluations/")), (2, 2), out)
        self.assertIn("2 before it were created", self.service.last_stderr)
        # A file that cannot be read is found before anything is created.
        code, objects = self.service.json("submit", good, other)
        self.assertEqual((code, len(objects)), (2, 1))

    def test_links_out_of_the_folder(self):
        link = os.path.join(self.directory.name, "link.cc")
        os.symlink("/etc/hostname", link)
        self.refused("CANDIDATE_MALFORMED", link, "--problem", "vector_add")
        folder = os.path.join(self.directory.name, "linked")
        os.makedirs(folder)
        with open(os.path.join(harness.PROBLEMS, "vector_add", "problem.textproto"), "rb") as file:
            self.file("linked/problem.textproto", file.read())
        os.symlink("/etc/hostname", os.path.join(folder, "reference.cc"))
        code, objects = self.service.json("problems", "create", folder, "--no-audit")
        self.assertEqual((code, objects[0]["error"]["reason"]), (2, "PROBLEM_MALFORMED"), objects)

    def test_nothing_to_measure(self):
        plain = harness.candidate("vector_add", "plain")
        for words in (("submit", plain), ("submit", plain, "--level", "ranked"),
                      ("gate", "--baseline", plain, "--candidate", plain)):
            code, objects = self.service.json(*words, "--workload", VERIFY_ONLY)
            self.assertEqual((code, objects[0]["error"]["reason"]), (2, "NOTHING_TO_MEASURE"), objects)
        self.assertEqual(self.service.cli("submit", plain, "--level", "verify", "--workload", VERIFY_ONLY)[0], 0)

    def test_leaderboard_of_what_is_unknown(self):
        for words, reason, known in ((("--workload", "enormous"), "WORKLOAD_NOT_FOUND", VERIFY_ONLY),
                                     (("--device", "cpu-none"), "DEVICE_CLASS_NOT_FOUND", "known: ")):
            code, objects = self.service.json("leaderboard", "vector_add", *words)
            self.assertEqual((code, objects[0]["error"]["reason"]), (2, reason), objects)
            self.assertIn(known, objects[0]["error"]["message"])

    def test_a_cut_list_says_so(self):
        for _ in range(3):
            self.service.cli("submit", harness.candidate("vector_add", "plain"), "--level", "verify")
        names = []
        words = []
        for _ in range(2):
            code, objects = self.service.json("evaluations", "list", "--limit", "1", *words)
            self.assertEqual((code, len(objects)), (0, 1))
            names.append(objects[0]["name"])
            words = ["--page-token", self.service.last_stderr.split("--page-token ")[1].split(",")[0]]
        self.assertGreater(names[0], names[1])
        self.service.cli("evaluations", "list")
        self.assertEqual(self.service.last_stderr, "")

    def test_no_server(self):
        done = subprocess.run([os.path.join(harness.BIN, "assay"), "fleet", "list", "--server", "127.0.0.1:1"],
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
        self.assertEqual(done.returncode, 2)
        self.assertIn(b"assay up", done.stderr)

    def test_unknown_names(self):
        for words, reason in ((("evaluations", "show", "none"), "EVALUATION_NOT_FOUND"),
                              (("candidates", "show", "none"), "CANDIDATE_NOT_FOUND"),
                              (("problems", "show", "none"), "PROBLEM_NOT_FOUND"),
                              (("fleet", "drain", "none"), "WORKER_NOT_FOUND")):
            code, objects = self.service.json(*words)
            self.assertEqual((code, objects[0]["error"]["reason"]), (2, reason))

    def test_without_a_worker_it_says_that_it_waits(self):
        code, objects = self.service.json("submit", harness.candidate("vector_add", "plain"))
        self.assertEqual(code, 0)

        def waits():
            _, shown = self.service.json("evaluations", "show", objects[0]["name"])
            return "no worker" in shown[0]["waiting_reason"]

        harness.wait_until(waits, "a waiting reason")


class Remains:
    """What candidates may leave on the worker's machine: processes, control groups, files."""

    FIRST_USER, USERS = 64000, 1024
    # A runner that ends with its guests leaves their groups, two each, to the next one that starts: they are empty, and do not add up.
    GROUPS_MAX = 40

    def __init__(self, worker):
        self.worker = worker
        self.seen = self.below()
        self.files = self.foreign_files()

    def below(self):
        """The worker's processes and theirs."""
        parents = {}
        for name in os.listdir("/proc"):
            if name.isdigit():
                try:
                    with open("/proc/%s/stat" % name, encoding="utf-8", errors="replace") as file:
                        parents[int(name)] = int(file.read().rsplit(")", 1)[1].split()[1])
                except OSError:
                    continue
        found = {self.worker}
        while True:
            more = {pid for pid, parent in parents.items() if parent in found} - found
            if not more:
                return found - {self.worker}
            found |= more

    def foreign_files(self):
        """Files in the temporary folder that belong to a sandbox's user."""
        found = set()
        for entry in os.scandir(tempfile.gettempdir()):
            try:
                user = entry.stat(follow_symlinks=False).st_uid
            except OSError:
                continue
            if self.FIRST_USER <= user < self.FIRST_USER + self.USERS:
                found.add(entry.path)
        return found

    def stale_groups(self):
        """Groups of processes that were the worker's and are gone. A group is named <pid>-<slot>-<n>."""
        groups = []
        for depth in range(6):
            groups += glob.glob("/sys/fs/cgroup/" + "*/" * depth + "assay/[0-9]*-*")
        gone = {pid for pid in self.seen if not os.path.exists("/proc/%d" % pid)}
        return [group for group in groups if int(os.path.basename(group).split("-")[0]) in gone]

    def check(self, processes_max):
        """Waits until nothing is left; runners that were started ahead stay, up to `processes_max` processes."""
        def clean():
            now = self.below()
            self.seen |= now
            return len(now) <= processes_max and len(self.stale_groups()) <= self.GROUPS_MAX and self.foreign_files() <= self.files

        harness.wait_until(clean, "a clean machine: %d processes, groups %s, files %s" % (
            len(self.below()), self.stale_groups(), self.foreign_files() - self.files))


class Hostile(unittest.TestCase):
    """Candidates that are wrong or hostile: each gets its verdict, leaves nothing, and the service goes on."""

    # Of the runners that are started ahead: two, each with a few guests of two processes.
    IDLE_PROCESSES_MAX = 40

    @classmethod
    def setUpClass(cls):
        cls.service = harness.Service()

    @classmethod
    def tearDownClass(cls):
        cls.service.close()

    def test_expected_verdicts(self):
        rows = list(expectations())
        self.assertGreater(len([path for path, _, _, _ in rows if path.startswith("hostile/")]), 120)
        remains = Remains(self.service.worker.popen.pid)
        for path, problem, verdict, reasons in rows:
            with self.subTest(candidate=path):
                words = ["--workload", "n=10007"] if problem == "vector_add" else []
                evaluation = self.service.judge(os.path.join(CANDIDATES, path), "--problem", problem, "--level",
                                                "quick" if problem == "vector_add" else "verify", *words)
                outcome = evaluation.get("outcome", {})
                got = (evaluation["state"], outcome.get("verdict"), outcome.get("reason"))
                self.assertEqual(got[:2], ("SUCCEEDED", verdict), "%s: %s" % (got, outcome.get("message")))
                self.assertIn(outcome["reason"], reasons, outcome["message"])
                self.assertTrue(outcome["message"])
                self.assertIsNone(self.service.worker.popen.poll(), "the worker lives")
                remains.check(self.IDLE_PROCESSES_MAX)

    def test_answers_derived_from_earlier_ones_are_suspect(self):
        evaluation = self.service.judge(os.path.join(CANDIDATES, "hostile", "derives_answers.cc"), "--level", "quick",
                                        "--workload", "square_256")
        outcome = evaluation["outcome"]
        self.assertEqual(outcome["verdict"], "PASSED", outcome["message"])
        findings = {finding["detector"]: finding for finding in outcome.get("findings", [])}
        self.assertEqual(findings["derived_answers"]["severity"], "SUSPECT", findings)

    def test_a_good_candidate_passes_afterwards(self):
        evaluation = self.service.judge(harness.candidate("vector_add", "avx2"), "--level", "verify")
        self.assertEqual(evaluation["outcome"]["verdict"], "PASSED")


if __name__ == "__main__":
    unittest.main(verbosity=2)
