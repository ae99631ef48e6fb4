"""assay-gpu-check and scripts/gpu_check on a machine without a GPU: the emulated device stands in the place of the real one."""

import os
import subprocess
import tempfile
import unittest

BIN = os.environ["ASSAY_BIN_DIR"]
SOURCE = os.environ["ASSAY_SOURCE_DIR"]
PROBLEMS = os.path.join(SOURCE, "kernels", "problems")
PLANTED = os.path.join(SOURCE, "tests", "gpu", "planted")
EMULATOR = os.path.join(BIN, "libassay_emulated_cuda.so")

# Without tensor operations, atomics or approximations; with each of them; CUDA C++ needs a compiler.
EXACT = ["vector_add/candidates/ptx_plain.ptx", "vector_add/candidates/ptx_vector4.ptx",
         "reduce_sum/candidates/ptx_two_launches.ptx"]
COMPILED = ["histogram/candidates/cuda_private.cu", "softmax/candidates/cuda_online.cu", "gemm_f16/candidates/cuda_mma_async.cu"]


class GpuCheck(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory(prefix="assay-gpu-check-test-")
        self.addCleanup(self.folder.cleanup)
        self.out = os.path.join(self.folder.name, "out")

    def run_tool(self, *words, driver=EMULATOR):
        done = subprocess.run(
            [os.path.join(BIN, "assay-gpu-check"), "--driver", driver, "--problems", PROBLEMS, "--out", self.out, "--ptx",
             os.path.join(self.folder.name, "ptx"), *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=600)
        return done.returncode, done.stdout.decode(), done.stderr.decode()

    @staticmethod
    def rows(text, candidate):
        return [line.split(" | ") for line in text.split("\n") if line.startswith("| ") and " | %s | " % candidate in line]

    def test_shipped_candidates_agree(self):
        code, text, errors = self.run_tool("--check-seconds", "12", *[os.path.join(PROBLEMS, name) for name in EXACT + COMPILED])
        self.assertEqual(code, 0, text + errors)
        for name in EXACT:
            rows = self.rows(text, os.path.splitext(os.path.basename(name))[0])
            self.assertTrue(rows, text)
            for row in rows:
                self.assertEqual(row[3], "same bits", row)
                self.assertEqual(row[6].strip(" |"), "", row)
        self.assertIn("| device | Assay emulated sm_80, sm_80 |", text)
        self.assertIn("* ceilings and times: an emulated device has none", text)
        self.assertNotIn("## Ceilings", text)
        self.assertNotIn("## Times", text)
        with open(os.path.join(self.out, "gpu_check.md"), encoding="utf-8") as file:
            self.assertEqual(file.read().strip(), text[:text.index("gpu_check: results are in")].strip())
        self.assertEqual(os.listdir(self.out), ["gpu_check.md"])
        for name, why in zip(COMPILED, ("atom.", ".approx.", "mma.sync")):
            rows = self.rows(text, os.path.splitext(os.path.basename(name))[0])
            if not rows:
                self.assertIn(os.path.join(PROBLEMS, name) + ": ", text)  # no compiler here
                continue
            self.assertTrue(any(why in row[6] or "red." in row[6] for row in rows), rows)

    def test_a_planted_difference_is_reported(self):
        code, text, errors = self.run_tool("--check-seconds", "4", os.path.join(PLANTED, "vector_add_order.ptx"),
                                           os.path.join(PROBLEMS, EXACT[0]))
        self.assertEqual(code, 1, text + errors)
        self.assertTrue(any(row[3].startswith("DIFFERS: c differs, first at element ") for row in self.rows(text, "planted_order")),
                        text)
        self.assertTrue(all(row[3] == "same bits" for row in self.rows(text, "ptx_plain")), text)

    def test_a_write_outside_is_reported(self):
        code, text, errors = self.run_tool("--check-seconds", "2", os.path.join(PLANTED, "vector_add_past_end.ptx"))
        self.assertEqual(code, 1, text + errors)
        self.assertTrue(any("on the device: a kernel wrote past the end of c, 0 bytes behind it" in row[3]
                            for row in self.rows(text, "planted_past_end")), text)

    def test_what_has_no_time_is_listed(self):
        code, text, errors = self.run_tool("--check-seconds", "0", os.path.join(PROBLEMS, EXACT[0]))
        self.assertEqual(code, 0, text + errors)
        self.assertIn("ptx_plain.ptx: no time left of 0", text)

    def test_without_a_driver_nothing_is_run(self):
        code, text, errors = self.run_tool(driver="libassay-no-such-driver.so.1")
        self.assertEqual((code, text, errors), (0, "gpu_check: no CUDA driver here; nothing was run\n", ""))
        self.assertFalse(os.path.exists(self.out))

    def test_bad_arguments(self):
        for words in (["--seed", "x"], ["--nonsense", "1"], ["--out"], ["--check-seconds", "-1"], ["--compile", "80"]):
            with self.subTest(words=words):
                code, text, errors = self.run_tool(*words)
                self.assertEqual((code, text), (2, ""))
                self.assertTrue(errors.startswith("gpu_check: "), errors)
                self.assertIn(words[0], errors)

    def test_a_candidate_that_is_none_fails(self):
        code, text, errors = self.run_tool("--check-seconds", "2", os.path.join(SOURCE, "README.md"))
        self.assertEqual(code, 1, text + errors)
        self.assertIn("FAILED", text)

    def test_ceilings_of_an_emulated_device_are_refused(self):
        for words, message in (([EMULATOR], "no times"), (["libassay-no-such-driver.so.1"], "cannot be loaded"),
                               ([EMULATOR, "x"], "usage: ")):
            with self.subTest(words=words):
                done = subprocess.run([os.path.join(BIN, "assay-gpu-ceilings"), *words], stdout=subprocess.PIPE,
                                      stderr=subprocess.PIPE, timeout=60)
                self.assertEqual((done.returncode, done.stdout), (2, b""))
                self.assertTrue(done.stderr.decode().startswith("assay-gpu-ceilings: "), done.stderr)
                self.assertIn(message, done.stderr.decode())

    def test_the_script_says_so_where_no_driver_is(self):
        try:
            import ctypes
            ctypes.CDLL("libcuda.so.1")
            self.skipTest("this machine has a CUDA driver")
        except OSError:
            pass
        done = subprocess.run([os.path.join(SOURCE, "scripts", "gpu_check"), self.out], stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, timeout=60)
        self.assertEqual((done.returncode, done.stdout.decode()), (0, "gpu_check: no CUDA driver here; nothing was run\n"))
        self.assertFalse(os.path.exists(self.out))


if __name__ == "__main__":
    unittest.main(verbosity=2)
