#!/usr/bin/env python3
"""The main journeys over the command line, with the real server, worker and sandbox."""

import json
import os
import tempfile
import unittest

import harness

SLOW = """/* assay-candidate
problem: "vector_add"
language: CPP
label: "slow"
*/
extern "C" void vector_add(const float* a, const float* b, float* c, int64_t n) {
  for (int round = 0; round < 8; ++round) {
    for (int64_t i = 0; i < n; ++i) {
      volatile float sum = a[i] + b[i];
      c[i] = sum;
    }
  }
}
"""


class Journey(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.service = harness.Service()
        cls.directory = tempfile.TemporaryDirectory(prefix="assay-test.")

    @classmethod
    def tearDownClass(cls):
        cls.service.close()
        cls.directory.cleanup()

    def write(self, name, text):
        path = os.path.join(self.directory.name, name)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        return path

    def test_every_shipped_candidate_passes(self):
        for problem in sorted(os.listdir(harness.PROBLEMS)):
            for name in sorted(os.listdir(os.path.join(harness.PROBLEMS, problem, "candidates"))):
                if name.endswith((".cu", ".ptx")):
                    continue  # judged in device_test.py
                path = os.path.join(harness.PROBLEMS, problem, "candidates", name)
                with self.subTest(problem=problem, candidate=name):
                    evaluation = self.service.judge(path, *self.service.verify_words(problem))
                    self.assertEqual(evaluation["outcome"]["verdict"], "PASSED", evaluation["outcome"]["message"])

    def test_every_wrong_candidate_of_a_problem_is_incorrect(self):
        count = 0
        for problem in sorted(os.listdir(harness.PROBLEMS)):
            folder = os.path.join(harness.PROBLEMS, problem, "candidates_wrong")
            for name in sorted(os.listdir(folder)) if os.path.isdir(folder) else []:
                if name.endswith((".cu", ".ptx")):
                    continue  # judged in device_test.py
                with self.subTest(problem=problem, candidate=name):
                    # On every workload: a small one does not show every mistake. The first that does ends the evaluation.
                    evaluation = self.service.judge(os.path.join(folder, name), "--level", "verify")
                    self.assertEqual(evaluation["outcome"]["verdict"], "INCORRECT", evaluation["outcome"])
                    self.assertTrue(evaluation["outcome"]["message"])
                count += 1
        self.assertGreater(count, 0)

    def test_quick_measures_and_compares_with_the_limit(self):
        evaluation = self.service.judge(harness.candidate("vector_add", "avx2"), "--level", "quick",
                                        "--workload", "n=100000")
        self.assertEqual(evaluation["state"], "SUCCEEDED")
        result = evaluation["outcome"]["workload_results"][0]
        self.assertEqual(result["workload"], "n=100000")
        self.assertGreaterEqual(result["measurement"]["sample_count"], 30)
        self.assertGreater(result["measurement"]["median_ns"], 0)
        self.assertGreater(result["measurement"]["handshake_ns"], 0)
        self.assertGreater(result["measurement"]["cold"]["median_ns"], 0)
        self.assertIn(result["ceiling"]["bound"], ("MEMORY", "COMPUTE", "LAUNCH"))
        self.assertGreater(result["efficiency_ratio"], 0)
        self.assertLessEqual(result["efficiency_ratio"], 1.05)

    def test_samples_are_kept(self):
        evaluation = self.service.judge(harness.candidate("gelu", "avx2"), "--workload", "n=4096")
        self.assertNotIn("runners", {k for k, v in evaluation["outcome"]["workload_results"][0]["measurement"].items()
                                     if v})
        code, objects = self.service.json("evaluations", "show", evaluation["name"], "--samples")
        self.assertEqual(code, 0)
        runners = objects[0]["outcome"]["workload_results"][0]["measurement"]["runners"]
        self.assertGreaterEqual(len(runners[0]["warm_ns"]), 30)

    def test_ranked_results_reach_the_leaderboard(self):
        for name in ("plain", "avx2"):
            evaluation = self.service.judge_ranked(harness.candidate("rmsnorm", name),
                                                   "--workload", "rows=64,cols=1024")
            self.assertEqual(evaluation["outcome"]["verdict"], "PASSED", evaluation["outcome"])
            self.assertGreaterEqual(evaluation["outcome"]["workload_results"][0]["measurement"]["runner_count"], 3)
        code, objects = self.service.json("leaderboard", "rmsnorm")
        self.assertEqual(code, 0)
        entries = objects[0]["entries"]
        self.assertEqual([entry["rank"] for entry in entries], [1, 2])
        self.assertEqual({entry["candidate_label"] for entry in entries}, {"plain", "avx2"})
        self.assertLessEqual(entries[0]["median_ns"], entries[1]["median_ns"])
        self.assertEqual(entries[0]["confirmation"], "CONFIRMED")
        self.assertEqual(entries[0]["confirmed_by"], entries[0]["evaluation"] + "-confirmation")

    def test_a_replay_says_the_same(self):
        wrong = self.write("wrong_replay.cc", "void vector_add(const float* a, const float* b, float* c, int64_t n) "
                                              "{ for (int64_t i = 0; i < n; ++i) c[i] = a[i]; }\n")
        for path, words in ((harness.candidate("vector_add", "plain"), ()), (wrong, ("--problem", "vector_add"))):
            first = self.service.judge(path, "--level", "verify", "--workload", "n=1000", *words)
            code, objects = self.service.json("evaluations", "replay", first["name"], "--wait")
            self.assertEqual(code, 0, self.service.last_stderr)
            second = objects[0]
            self.assertEqual(second["replay_of"], first["name"])
            self.assertEqual(second["outcome"]["nonce"], first["outcome"]["nonce"])
            for field in ("verdict", "reason", "message"):
                self.assertEqual(second["outcome"][field], first["outcome"][field])
            self.assertEqual(*(e["outcome"]["workload_results"][0]["verification"]["input_fingerprint"]
                               for e in (first, second)))
            self.assertIn("same verdict, reason and findings", self.service.last_stderr)

    def test_same_request_id_gives_the_same_evaluation(self):
        path = harness.candidate("vector_add", "plain")
        first = self.service.judge(path, "--level", "verify", "--request-id", "r1")
        second = self.service.judge(path, "--level", "verify", "--request-id", "r1")
        self.assertEqual(first["name"], second["name"])
        code, objects = self.service.json("submit", harness.candidate("vector_add", "avx2"), "--request-id", "r1")
        self.assertEqual(code, 2)
        self.assertEqual(objects[0]["error"]["code"], "ALREADY_EXISTS")
        self.assertEqual(objects[0]["error"]["reason"], "REQUEST_ID_REUSED")

    def test_identical_evaluation_is_answered_from_the_store(self):
        words = (harness.candidate("scan", "plain"), "--level", "verify", "--workload", "n=1000")
        first = self.service.judge(*words)
        second = self.service.judge(*words, "--stored-answer")
        self.assertEqual(second["answered_by"], first["name"])
        self.assertEqual(second["outcome"]["verdict"], "PASSED")
        other = self.service.judge(words[0], "--level", "verify", "--workload", "n=1001", "--stored-answer")
        self.assertEqual(other["answered_by"], "")

    def test_list_filters_and_pages(self):
        self.service.judge(harness.candidate("topk", "plain"), "--level", "verify", "--workload", "rows=4,cols=64,k=3")
        code, objects = self.service.json("evaluations", "list", "--filter",
                                          'problem = "problems/topk" AND verdict = PASSED', "--limit", "1")
        self.assertEqual(code, 0)
        self.assertEqual(len(objects), 1)
        self.assertEqual(objects[0]["problem"], "problems/topk")
        code, objects = self.service.json("evaluations", "list", "--filter", "problem ~ 3")
        self.assertEqual(code, 2)
        self.assertEqual(objects[0]["error"]["code"], "INVALID_ARGUMENT")

    def test_unplaceable_evaluation_says_so_and_can_be_cancelled(self):
        code, objects = self.service.json("submit", harness.candidate("vector_add", "plain"), "--device",
                                          "cpu-none-f0m0-base")
        self.assertEqual(code, 0)
        name = objects[0]["name"]

        def waits():
            _, shown = self.service.json("evaluations", "show", name)
            return "cpu-none-f0m0-base" in shown[0]["waiting_reason"]

        harness.wait_until(waits, "a waiting reason")
        code, objects = self.service.json("evaluations", "cancel", name)
        self.assertEqual((code, objects[0]["state"]), (0, "CANCELLED"))
        code, objects = self.service.json("evaluations", "cancel", name)
        self.assertEqual((code, objects[0]["error"]["reason"]), (2, "EVALUATION_FINISHED"))

    def test_a_problem_is_added_to_the_running_service(self):
        folder = os.path.join(self.directory.name, "scale")
        os.makedirs(folder)
        with open(os.path.join(folder, "problem.textproto"), "w", encoding="utf-8") as file:
            file.write('''name: "scale" version: 1 summary: "y = 2 x" arithmetic: "f32"
axes { name: "n" }
tensors { name: "x" dtype: F32 role: INPUT shape: "n" distribution { normal { stddev: 1 } } scalable: true }
tensors { name: "y" dtype: F32 role: OUTPUT shape: "n"
          tolerance { kind: SCALED relative_l2_max: 1e-6 element_max: 1e-5 } }
reference: "reference.cc"
transforms { permutation { inputs { tensor: "x" } outputs { tensor: "y" } } }
work { unit: FLOP_F32 operations: "n" }
workloads { name: "small" axes { key: "n" value: 1000 } }
''')
        with open(os.path.join(folder, "reference.cc"), "w", encoding="utf-8") as file:
            file.write("void scale_reference(const float* x, double* y, int64_t n) "
                       "{ for (int64_t i = 0; i < n; ++i) y[i] = 2.0 * x[i]; }\n")
        code, out = self.service.cli("problems", "create", folder, "--no-audit")
        self.assertEqual(code, 0, self.service.last_stderr)
        source = self.write("scale.cc", "void scale(const float* x, float* y, int64_t n) "
                                        "{ for (int64_t i = 0; i < n; ++i) y[i] = x[i] + x[i]; }\n")
        evaluation = self.service.judge(source, "--problem", "scale")
        self.assertEqual(evaluation["outcome"]["verdict"], "PASSED", evaluation["outcome"])
        # The same contract again is the same problem; another one needs another version.
        code, _ = self.service.cli("problems", "create", folder, "--no-audit")
        self.assertEqual(code, 0)
        with open(os.path.join(folder, "reference.cc"), "w", encoding="utf-8") as file:
            file.write("void scale_reference(const float* x, double* y, int64_t n) { __builtin_trap(); }\n")
        code, objects = self.service.json("problems", "create", folder, "--no-audit")
        self.assertEqual((code, objects[0]["error"]["reason"]), (2, "PROBLEM_VERSION_EXISTS"))
        code, objects = self.service.json("problems", "create", folder, "--no-audit", "--validate-only")
        self.assertEqual((code, objects[0]["error"]["reason"]), (2, "PROBLEM_VERSION_EXISTS"))
        path = os.path.join(folder, "problem.textproto")
        with open(path, encoding="utf-8") as file:
            text = file.read()
        with open(path, "w", encoding="utf-8") as file:
            file.write(text.replace("version: 1", "version: 2"))
        self.assertEqual(self.service.cli("problems", "create", folder, "--no-audit")[0], 0)
        evaluation = self.service.judge(source, "--problem", "scale")
        self.assertEqual(evaluation["outcome"]["verdict"], "INVALID_PROBLEM", evaluation["outcome"])
        self.assertEqual(self.service.cli("submit", source, "--problem", "scale", "--wait")[0], 2)

    def test_gate_finds_a_slower_candidate(self):
        slow = self.write("slow.cc", SLOW)
        fast = harness.candidate("vector_add", "plain")
        code, objects = self.service.json("gate", "--baseline", fast, "--candidate", slow, "--workload", "n=20000",
                                          "--pairs", "12")
        self.assertEqual((code, objects[0]["decision"]), (1, "REGRESSION"), objects)
        self.assertGreater(objects[0]["workloads"][0]["ratio"], 1.5)
        self.assertEqual(len(objects[0]["evaluations"]), 2)
        code, out = self.service.cli("gate", "--baseline", slow, "--candidate", fast, "--workload", "n=20000",
                                     "--pairs", "12", "--markdown")
        self.assertEqual(code, 0, out)
        self.assertIn("| ` n=20000 ` | PASS |", out)

    def test_gate_refuses_to_compare_what_is_wrong(self):
        wrong = self.write("wrong.cc", "void vector_add(const float* a, const float* b, float* c, int64_t n) "
                                       "{ for (int64_t i = 0; i < n; ++i) c[i] = a[i]; }\n")
        code, objects = self.service.json("gate", "--problem", "vector_add", "--baseline",
                                          harness.candidate("vector_add", "plain"), "--candidate", wrong,
                                          "--workload", "n=1000")
        self.assertEqual((code, objects[0]["decision"]), (5, "NOT_CORRECT"))
        # A wrong baseline says nothing of the candidate.
        words = ("gate", "--problem", "vector_add", "--baseline", wrong, "--candidate",
                 harness.candidate("vector_add", "plain"), "--workload", "n=1000")
        code, objects = self.service.json(*words)
        self.assertEqual((code, objects[0]["decision"]), (2, "BASELINE_INVALID"))
        self.assertIn(wrong, objects[0]["explanation"])
        self.assertIn("BASELINE_FAILED", objects[0]["explanation"])
        code, out = self.service.cli(*words, "--markdown")
        self.assertEqual(code, 2)
        self.assertIn(wrong, out)
        self.assertEqual(self.service.cli(*words, "--markdown", "--json")[0], 2)

    def test_doctor_reports(self):
        code, out = self.service.cli("doctor", "--json")
        checks = {check["name"]: check for check in json.loads(out)["checks"]}
        fit = all(check["ok"] for check in checks.values() if check["required"])
        self.assertEqual(code, 0 if fit else 4, out)
        self.assertFalse(checks["openblas"]["required"])
        for name, required in (("compiler", True), ("wall seccomp", True), ("wall files", True),
                               ("wall uid", os.geteuid() == 0), ("wall cgroup-memory", False)):
            self.assertEqual(checks[name]["required"], required, name)
        for name, check in checks.items():
            if name.startswith("wall "):
                self.assertEqual(check["ok"], check["state"] == "STANDING", check)
                self.assertIn(check["state"], ("STANDING", "WEAKER", "MISSING"))


class TwoWorkers(unittest.TestCase):
    def setUp(self):
        self.service = harness.Service()
        self.addCleanup(self.service.close)
        self.first = self.service.worker
        self.addCleanup(self.first.kill)

    def submit(self, count):
        names = []
        for _ in range(count):
            code, objects = self.service.json("submit", harness.candidate("vector_add", "plain"), "--level", "verify",
                                              "--workload", "n=10")
            self.assertEqual(code, 0, objects)
            names.append(objects[0]["name"])
        return names

    def judged_by(self, names):
        workers = set()
        for name in names:
            code, out = self.service.cli("evaluations", "watch", name)
            self.assertEqual(code, 0, out)
            _, shown = self.service.json("evaluations", "show", name)
            workers.add(shown[0]["worker"])
        return workers

    def test_drained_worker_takes_nothing(self):
        self.assertEqual(self.service.cli("fleet", "drain", "w1")[0], 0)
        _, workers = self.service.json("fleet", "list")
        self.assertEqual(workers[0]["state"], "DRAINING")
        # It alone is there, and asks for work as long as the other takes to start.
        names = self.submit(4)
        second = self.service.start_worker("w2")
        self.assertEqual(self.judged_by(names), {"workers/w2"})
        self.assertEqual(self.service.cli("fleet", "undrain", "w1")[0], 0)
        second.kill()
        self.assertEqual(self.judged_by(self.submit(1)), {"workers/w1"})

    def test_two_workers_of_one_machine_share_no_user_id(self):
        if os.geteuid() != 0:
            self.skipTest("only root takes user ids")
        second = self.service.start_worker("w2")
        shares = {}
        with open("/proc/locks", encoding="ascii") as file:
            for line in file:
                words = line.split()
                if "FLOCK" in words:
                    place = words.index("FLOCK")
                    shares.setdefault(int(words[place + 3]), set()).add(int(words[place + 4].split(":")[2]))
        files = {os.stat(os.path.join("/run/assay", name)).st_ino for name in os.listdir("/run/assay")}
        ours, theirs = (shares.get(worker.popen.pid, set()) & files for worker in (self.first, second))
        self.assertEqual((len(ours), len(theirs)), (1, 1))
        self.assertNotEqual(ours, theirs)


if __name__ == "__main__":
    unittest.main(verbosity=2)
