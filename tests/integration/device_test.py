"""Device-tier candidates, CUDA C++ and PTX, judged on the emulated device. No GPU is needed, or used."""

import os
import tempfile
import unittest

import harness

CANDIDATES = os.path.join(harness.SOURCE, "tests", "candidates", "cuda")


class Device(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.service = harness.Service(device="emulated:sm_80")
        outcome = cls.service.judge(cls.shipped("vector_add", "cuda_plain.cu"), "--level", "verify")["outcome"]
        cls.missing_cuda = outcome["message"] if outcome["reason"] in ("CUDA_NOT_INSTALLED", "CUDA_TOO_OLD") else ""

    @classmethod
    def tearDownClass(cls):
        cls.service.close()

    @staticmethod
    def shipped(problem, name):
        return os.path.join(harness.PROBLEMS, problem, "candidates", name)

    def judge(self, path, *words):
        if path.endswith(".cu") and self.missing_cuda:
            self.skipTest(self.missing_cuda)
        return self.service.judge(path, *words)["outcome"]

    def small(self, problem):
        """One workload that is only verified, where time is short."""
        return self.service.verify_words(problem) if os.environ.get("ASSAY_TEST_SMALL") else ["--level", "verify"]

    def test_every_shipped_candidate_passes(self):
        count = 0
        for problem in sorted(os.listdir(harness.PROBLEMS)):
            for name in sorted(os.listdir(os.path.join(harness.PROBLEMS, problem, "candidates"))):
                if not name.endswith((".cu", ".ptx")):
                    continue
                count += 1
                with self.subTest(problem=problem, candidate=name):
                    outcome = self.judge(self.shipped(problem, name), *self.small(problem))
                    self.assertEqual(outcome["verdict"], "PASSED", outcome["message"])
                    # Atomic sums of floating point may round, and scans say what instructions there are; nothing else is noted.
                    findings = outcome.get("findings", [])
                    noted = {finding["detector"] for finding in findings}
                    self.assertLessEqual(noted, {"order_dependence", "device_instructions", "precision_instructions"}, findings)
                    self.assertLessEqual({finding["severity"] for finding in findings}, {"NOTICE"}, findings)
        self.assertGreater(count, 30)

    def test_every_wrong_candidate_of_a_problem_is_incorrect(self):
        count = 0
        for problem in sorted(os.listdir(harness.PROBLEMS)):
            folder = os.path.join(harness.PROBLEMS, problem, "candidates_wrong")
            for name in sorted(os.listdir(folder)) if os.path.isdir(folder) else []:
                if not name.endswith((".cu", ".ptx")):
                    continue
                count += 1
                with self.subTest(problem=problem, candidate=name):
                    outcome = self.judge(os.path.join(folder, name), *self.small(problem))
                    self.assertEqual(outcome["verdict"], "INCORRECT", outcome)
        self.assertGreater(count, 0)

    def test_an_emulated_device_gives_no_time(self):
        outcome = self.judge(self.shipped("vector_add", "ptx_plain.ptx"), "--level", "quick")
        self.assertEqual(outcome["verdict"], "PASSED", outcome["message"])
        self.assertIn("no time", outcome["message"])
        for result in outcome["workload_results"]:
            self.assertNotIn("measurement", result)

    def test_undefined_behavior_is_found_at_its_line(self):
        for name, check, text in (("softmax_missing_barrier.cu", "SHARED_RACE", "others may still read"),
                                  ("vector_add_off_by_one.cu", "OUT_OF_BOUNDS", "c[i] ="),
                                  ("vector_add_reads_output.cu", "UNINITIALIZED_READ", "c[i] +="),
                                  ("vector_add_writes_input.cu", "INPUT_WRITTEN", "const_cast")):
            with self.subTest(candidate=name):
                path = os.path.join(CANDIDATES, name)
                outcome = self.judge(path, "--level", "verify")
                self.assertEqual((outcome["verdict"], outcome["reason"]), ("UNDEFINED_BEHAVIOR", check), outcome["message"])
                finding = outcome["findings"][0]
                self.assertEqual((finding["detector"], finding["file"]), ("device_checks", name))
                with open(path, encoding="utf-8") as file:
                    lines = file.read().split("\n")
                self.assertIn(text, lines[finding["line"] - 1], finding)

    def test_a_result_that_depends_on_the_order(self):
        words = ["--level", "verify", "--workload", "n=1000"]
        outcome = self.judge(os.path.join(CANDIDATES, "vector_add_ticket.cu"), *words)
        self.assertEqual((outcome["verdict"], outcome["reason"]), ("NONDETERMINISTIC", "MISMATCH"), outcome["message"])
        finding = outcome["findings"][0]
        self.assertEqual((finding["detector"], finding["severity"]), ("order_dependence", "PROOF"), finding)
        self.assertRegex(finding["evidence"], r"c\[\d+\] is \S+ in (the natural order|order \d+) and \S+ in order \d+")
        self.assertIn("seed", finding["evidence"])
        # Sums of floating point round differently in every order: worth knowing, and no fault.
        outcome = self.judge(os.path.join(CANDIDATES, "reduce_sum_atomic.cu"), *words)
        self.assertEqual(outcome["verdict"], "PASSED", outcome["message"])
        self.assertEqual([(f["detector"], f["severity"]) for f in outcome["findings"]], [("order_dependence", "NOTICE")])
        self.assertIn("within the tolerance", outcome["findings"][0]["evidence"])

    def test_work_is_counted(self):
        path = self.shipped("vector_add", "ptx_plain.ptx")
        outcome = self.judge(path, "--level", "verify", "--workload", "n=4096")
        observed = outcome["workload_results"][0]["observed"]
        self.assertEqual(int(observed["f32_flops"]), 4096)
        self.assertEqual(int(observed["global_load_bytes"]), 2 * 4 * 4096)
        self.assertEqual(int(observed["global_store_bytes"]), 4 * 4096)
        self.assertEqual(observed["global_sectors"], observed["global_sectors_least"])
        self.assertAlmostEqual(observed["arithmetic_intensity"], 1 / 12)
        self.assertAlmostEqual(observed["declared_intensity"], 1 / 12)
        code, shown = self.service.cli("submit", path, "--level", "verify", "--workload", "n=4096", "--wait")
        self.assertEqual(code, 0, shown)
        self.assertRegex(shown, r"n=4096 +4\.1 k +0 +49\.2 kB +0\.0833 +0\.0833 +1\.00x least")

    def test_a_plan_is_proposed(self):
        path = os.path.join(CANDIDATES, "vector_add_unplanned.cu")
        code, text = self.service.cli("candidates", "propose", path, "--problem", "vector_add")
        self.assertEqual(code, 0, self.service.last_stderr)
        with tempfile.TemporaryDirectory() as folder:
            planned = os.path.join(folder, "planned.cu")
            with open(planned, "w", encoding="utf-8") as file:
                file.write(text)
            outcome = self.judge(planned, "--level", "verify", "--workload", "n=1000")
            self.assertEqual(outcome["verdict"], "PASSED", outcome["message"])

    def test_host_code_is_called_what_it_is(self):
        outcome = self.judge(os.path.join(CANDIDATES, "vector_add_launcher.cu"), "--level", "verify")
        self.assertEqual((outcome["verdict"], outcome["reason"]), ("COMPILE_ERROR", "COMPILE_FAILED"), outcome["message"])
        self.assertRegex(outcome["message"], r"vector_add_launcher\.cu:1[67]:.*holds device code only")

    def test_other_verdicts(self):
        for name, verdict, reason in (("vector_add_wrong.cu", "INCORRECT", "MISMATCH"),
                                      ("vector_add_endless.cu", "TIMED_OUT", "TIMED_OUT"),
                                      ("vector_add_traps.cu", "RUNTIME_ERROR", "DEVICE_TRAP"),
                                      ("vector_add_syntax.cu", "COMPILE_ERROR", "COMPILE_FAILED"),
                                      ("vector_add_bad_plan.cu", "COMPILE_ERROR", "PLAN_INVALID"),
                                      ("vector_add_no_kernel.cu", "COMPILE_ERROR", "KERNEL_NOT_FOUND")):
            with self.subTest(candidate=name):
                outcome = self.judge(os.path.join(CANDIDATES, name), "--level", "verify")
                self.assertEqual((outcome["verdict"], outcome["reason"]), (verdict, reason), outcome["message"])
                self.assertTrue(outcome["message"])

    def test_truncated_ptx_is_refused(self):
        outcome = self.judge(os.path.join(CANDIDATES, "truncated.ptx"), "--level", "verify")
        # By ptxas where it is installed, else by the emulated driver.
        self.assertIn((outcome["verdict"], outcome["reason"]), (("COMPILE_ERROR", "COMPILE_FAILED"), ("RUNTIME_ERROR", "LOAD_FAILED")))
        self.assertIn("14" if outcome["reason"] == "COMPILE_FAILED" else "line", outcome["message"])


if __name__ == "__main__":
    unittest.main(verbosity=2)
