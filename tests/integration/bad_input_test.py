#!/usr/bin/env python3
"""Bad input: a clear error with a stable reason, the right exit code, and a service that goes on."""

import os
import subprocess
import tempfile
import unittest

import harness

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
                                                                    b'grid: "1" block: "1" } }\n*/\n'))

    def test_usage(self):
        for words in (["submit"], ["submit", "--frobnicate"], ["frobnicate"], ["submit", "x.cc", "--level", "best"],
                      ["evaluations", "show"], ["gate", "--baseline", "x"], []):
            done = subprocess.run([os.path.join(harness.BIN, "assay"), *words], stdout=subprocess.PIPE,
                                  stderr=subprocess.PIPE, check=False)
            self.assertEqual(done.returncode, 2, words)
            self.assertTrue(done.stderr)

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


class Hostile(unittest.TestCase):
    """Candidates that are wrong or hostile: each gets its verdict, and the service goes on."""

    @classmethod
    def setUpClass(cls):
        cls.service = harness.Service()

    @classmethod
    def tearDownClass(cls):
        cls.service.close()

    def test_expected_verdicts(self):
        rows = list(expectations())
        self.assertGreater(len(rows), 40)
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

    def test_a_good_candidate_passes_afterwards(self):
        evaluation = self.service.judge(harness.candidate("vector_add", "avx2"), "--level", "verify")
        self.assertEqual(evaluation["outcome"]["verdict"], "PASSED")


if __name__ == "__main__":
    unittest.main(verbosity=2)
