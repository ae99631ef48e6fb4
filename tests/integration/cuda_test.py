"""A worker for a CUDA device, on a driver that looks real and is none: what it times is the test's own clock."""

import os
import subprocess
import unittest

import harness

LIBRARIES = os.path.join(harness.BIN, "..", "testing")
FAKE = os.path.join(LIBRARIES, "libassay_fake_cuda.so")
CANDIDATES = os.path.join(harness.SOURCE, "tests", "candidates", "cuda")
DEVICE_CLASS = "cuda-assay-test-fake-sm_80"


class Cuda(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        os.environ["ASSAY_CUDA_DRIVER"] = FAKE
        cls.service = harness.Service(device="cuda")

    @classmethod
    def tearDownClass(cls):
        cls.service.close()
        del os.environ["ASSAY_CUDA_DRIVER"]

    @staticmethod
    def shipped(problem, name):
        return os.path.join(harness.PROBLEMS, problem, "candidates", name)

    def judge(self, path, *words):
        return self.service.judge(path, "--device", "cuda", *words)

    def trap(self):
        path = os.path.join(self.service.directory, "trap.ptx")
        with open(self.shipped("vector_add", "ptx_plain.ptx"), encoding="utf-8") as file:
            text = file.read()
        # Only a large workload runs into it.
        text = text.replace("$done:\n", "    setp.lt.u32 %past_end, %n, 4000;\n    @%past_end bra $done;\n    trap;\n$done:\n")
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        return path

    def test_the_device_is_registered_as_its_driver_names_it(self):
        _, workers = self.service.json("fleet", "list")
        device = workers[0]["devices"][0]
        self.assertEqual((device["kind"], device["device_class"], device["core_count"]), ("cuda", DEVICE_CLASS, 1))
        self.assertEqual(workers[0]["environment"]["device_model"], "Assay test fake")
        self.assertEqual(workers[0]["environment"]["instruction_set"], "sm_80 CUDA 13.0")

    def test_an_honest_kernel_passes_and_has_a_time(self):
        evaluation = self.judge(self.shipped("vector_add", "ptx_plain.ptx"), "--level", "quick", "--workload", "n=4096")
        outcome = evaluation["outcome"]
        self.assertEqual(outcome["verdict"], "PASSED", outcome["message"])
        results = {result["workload"]: result for result in outcome["workload_results"]}
        measurement = results["n=4096"]["measurement"]
        self.assertEqual(measurement["protocol"], "gpu-quick-v1")
        self.assertGreater(measurement["median_ns"], measurement["handshake_ns"])
        self.assertGreater(measurement["cold"]["median_ns"], measurement["warm"]["median_ns"])
        self.assertIn("CLOCKS_UNKNOWN", measurement["caveats"])

    def test_a_fault_that_the_preflight_proves_has_its_line(self):
        outcome = self.judge(os.path.join(CANDIDATES, "vector_add_off_by_one.cu"), "--level", "quick", "--workload", "n=4096")["outcome"]
        if outcome["reason"] in ("CUDA_NOT_INSTALLED", "CUDA_TOO_OLD"):
            self.skipTest(outcome["message"])
        self.assertEqual((outcome["verdict"], outcome["reason"]), ("UNDEFINED_BEHAVIOR", "OUT_OF_BOUNDS"), outcome["message"])
        self.assertEqual(outcome["findings"][0]["file"], "vector_add_off_by_one.cu")

    def test_a_sticky_error_ends_the_runner_and_nothing_else(self):
        outcome = self.judge(self.trap(), "--level", "quick", "--workload", "n=4096")["outcome"]
        self.assertEqual((outcome["verdict"], outcome["reason"]), ("RUNTIME_ERROR", "DEVICE_TRAP"), outcome["message"])
        outcome = self.judge(self.shipped("vector_add", "ptx_plain.ptx"), "--level", "verify", "--workload", "n=4096")["outcome"]
        self.assertEqual(outcome["verdict"], "PASSED", outcome["message"])


class WithoutADriver(unittest.TestCase):
    def test_the_worker_says_what_to_install(self):
        cases = (("no_such_libcuda.so.1", "DRIVER_MISSING", "install the NVIDIA driver"),
                 ("libassay_old_cuda.so", "DRIVER_TOO_OLD", "CUDA 11.4 or later"),
                 ("../bin/libassay_emulated_cuda.so", "DRIVER_EMULATED", "--device emulated"))
        for library, reason, text in cases:
            with self.subTest(library=library):
                environment = dict(os.environ, ASSAY_CUDA_DRIVER=os.path.join(LIBRARIES, library))
                done = subprocess.run([os.path.join(harness.BIN, "assay-worker"), "--server=127.0.0.1:9", "--device=cuda",
                                       "--name=w"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment, timeout=120,
                                      check=False)
                log = done.stderr.decode()
                self.assertEqual(done.returncode, 2, log)
                self.assertIn(reason, log)
                self.assertIn(text, log)


if __name__ == "__main__":
    unittest.main(verbosity=2)
