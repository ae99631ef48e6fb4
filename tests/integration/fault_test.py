#!/usr/bin/env python3
"""Faults of the machine: processes killed at any moment, a full disk, a sick compiler, a second server, a newer schema.

ASSAY_KILLS and ASSAY_EVALUATIONS set the size of the kill test (scripts/kill_test runs the large one); ASSAY_SEED its seed.
"""

import json
import os
import random
import shutil
import sqlite3
import struct
import subprocess
import tempfile
import threading
import unittest

import harness

KILLS = int(os.environ.get("ASSAY_KILLS", "16"))
EVALUATIONS = int(os.environ.get("ASSAY_EVALUATIONS", "160"))
SEED = int(os.environ.get("ASSAY_SEED", random.SystemRandom().randrange(1 << 32)))


def variants(count):
    """Sources that differ, in few enough versions that builds are found again."""
    for i in range(count):
        yield ("/* assay-candidate\nproblem: \"vector_add\"\nlanguage: CPP\n*/\n// variant %d\n"
               "void vector_add(const float* a, const float* b, float* c, int64_t n) "
               "{ for (int64_t i = 0; i < n; ++i) c[i] = a[i] + b[i]; }\n" % (i % 8))


class Kill(unittest.TestCase):
    def test_acknowledged_evaluations_end_with_exactly_one_result(self):
        print("seed %d, %d kills, %d evaluations" % (SEED, KILLS, EVALUATIONS))
        rng = random.Random(SEED)
        service = harness.Service()
        self.addCleanup(service.close)
        acknowledged = {}
        stop = threading.Event()
        failures = []

        def submit():
            """Sends every request until it is acknowledged, with the same request id each time."""
            with tempfile.TemporaryDirectory(prefix="assay-test.") as directory:
                path = os.path.join(directory, "a.cc")
                for i, source in enumerate(variants(EVALUATIONS)):
                    with open(path, "w", encoding="utf-8") as file:
                        file.write(source)
                    while not stop.is_set():
                        code, objects = service.json("submit", path, "--level", "verify", "--workload", "n=1000",
                                                     "--request-id", "kill-%d" % i)
                        if code == 0:
                            acknowledged["kill-%d" % i] = objects[0]["name"]
                            break
                        if not objects or objects[0]["error"]["code"] not in ("UNAVAILABLE", "DEADLINE_EXCEEDED",
                                                                              "CANCELLED"):
                            failures.append(objects)
                            return

        submitter = threading.Thread(target=submit)
        submitter.start()
        try:
            for _ in range(KILLS):
                harness.pause(rng.uniform(0.05, 1.0))
                if rng.random() < 0.5:
                    service.server.kill()
                    service.start_server()
                else:
                    service.worker.kill()
                    service.start_worker()
        except BaseException:
            stop.set()
            raise
        finally:
            submitter.join()
        self.assertEqual(failures, [])
        self.assertEqual(len(acknowledged), EVALUATIONS)
        self.assertEqual(len(set(acknowledged.values())), EVALUATIONS)

        names = set(acknowledged.values())

        def all_final():
            code, objects = service.json("evaluations", "list", "--limit", str(10 * EVALUATIONS))
            if code != 0:
                return None
            final = {e["name"]: e for e in objects if e["state"] in ("SUCCEEDED", "FAILED")}
            return final if names <= set(final) else None

        final = harness.wait_until(all_final, "every acknowledged evaluation final", seconds=120 + EVALUATIONS)
        passed = [e for e in final.values() if e["state"] == "SUCCEEDED" and e["outcome"]["verdict"] == "PASSED"]
        # A failed one lost its worker on every attempt; anything else is a fault.
        for evaluation in final.values():
            if evaluation["state"] == "FAILED":
                self.assertGreaterEqual(evaluation["attempt_count"], 3)
        self.assertGreaterEqual(len(passed), EVALUATIONS * 9 // 10)
        service.worker.stop(120)
        service.server.stop()
        database = sqlite3.connect(os.path.join(service.data, "assay.db"))
        self.addCleanup(database.close)
        self.assertEqual(database.execute("PRAGMA integrity_check").fetchone()[0], "ok")
        self.assertEqual(database.execute("SELECT COUNT(*) FROM evaluations").fetchone()[0], EVALUATIONS)
        doubled = database.execute("SELECT evaluation_id, workload, COUNT(*) FROM results GROUP BY 1, 2 "
                                   "HAVING COUNT(*) > 1").fetchall()
        self.assertEqual(doubled, [])


class Machine(unittest.TestCase):
    def setUp(self):
        self.directory = tempfile.mkdtemp(prefix="assay-test.")
        self.addCleanup(shutil.rmtree, self.directory, ignore_errors=True)

    def test_two_servers_on_one_data_folder(self):
        service = harness.Service(worker=False)
        self.addCleanup(service.close)
        done = subprocess.run([os.path.join(harness.BIN, "assay-server"), "--data=" + service.data,
                               "--listen=127.0.0.1:0"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False,
                              timeout=60)
        self.assertEqual(done.returncode, 2)
        self.assertIn(b"DATA_FOLDER_IN_USE", done.stderr)
        self.assertEqual(service.cli("problems", "list")[0], 0)

    def test_newer_schema_is_left_alone(self):
        service = harness.Service(worker=False)
        self.addCleanup(service.close)
        service.server.stop()
        path = os.path.join(service.data, "assay.db")
        with sqlite3.connect(path) as database:
            database.execute("PRAGMA user_version = 9999")
        database.close()
        done = subprocess.run([os.path.join(harness.BIN, "assay-server"), "--data=" + service.data,
                               "--listen=127.0.0.1:0"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False,
                              timeout=60)
        self.assertEqual(done.returncode, 2)
        self.assertIn(b"SCHEMA_TOO_NEW", done.stderr)

    def test_port_in_use(self):
        service = harness.Service(worker=False)
        self.addCleanup(service.close)
        done = subprocess.run([os.path.join(harness.BIN, "assay-server"), "--data=" + self.directory,
                               "--listen=" + service.address], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              check=False, timeout=60)
        self.assertEqual(done.returncode, 2)
        self.assertIn(service.address.encode(), done.stderr)

    def test_full_disk_loses_nothing(self):
        data = os.path.join(self.directory, "small")
        os.makedirs(data)
        mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=6m", "tmpfs", data], stderr=subprocess.DEVNULL,
                                 check=False)
        if mounted.returncode != 0:
            self.skipTest("cannot mount a small tmpfs here")
        self.addCleanup(subprocess.run, ["umount", "-l", data], check=False)
        server = harness.Process([os.path.join(harness.BIN, "assay-server"), "--data=" + os.path.join(data, "d"),
                                  "--listen=127.0.0.1:0", "--problems=" + harness.PROBLEMS], self.directory)
        self.addCleanup(server.kill)
        address = server.wait_for_line("listening ")

        def submit(number, size):
            path = os.path.join(self.directory, "c.cc")
            with open(path, "w", encoding="utf-8") as file:
                file.write("// %d %s\nvoid vector_add(const float* a, const float* b, float* c, int64_t n) {}\n"
                           % (number, "%x" % random.getrandbits(4 * size)))
            done = subprocess.run([os.path.join(harness.BIN, "assay"), "submit", path, "--problem", "vector_add",
                                   "--json", "--server", address], stdout=subprocess.PIPE, check=False)
            return json.loads(done.stdout)

        stored, refused = [], None
        for number in range(200):
            answer = submit(number, 200000)
            if "error" in answer:
                refused = answer["error"]
                break
            stored.append(answer["name"])
        self.assertIsNotNone(refused, "the disk never filled up")
        self.assertEqual((refused["code"], refused["reason"]), ("RESOURCE_EXHAUSTED", "STORAGE_FULL"))
        self.assertGreater(len(stored), 0)
        subprocess.run(["mount", "-o", "remount,size=64m", data], check=True)
        after = submit(1000, 200000)
        self.assertIn("name", after)
        listed = subprocess.run([os.path.join(harness.BIN, "assay"), "evaluations", "list", "--json", "--limit", "1000",
                                 "--server", address], stdout=subprocess.PIPE, check=True)
        names = [json.loads(line)["name"] for line in listed.stdout.splitlines()]
        self.assertEqual(sorted(names), sorted(stored + [after["name"]]))
        self.assertEqual(server.stop(), 0)


class Runner(unittest.TestCase):
    """A runner that cannot do its part says so in its report, with a reason."""

    def report(self, request):
        """What the runner writes to descriptor 3. Its standard input stays open: it ends itself when that closes."""
        process = subprocess.Popen(
            ["/bin/sh", "-c", 'exec "$0" --guest "$1" --guests-ahead 0 3>&1 >/dev/null',
             os.path.join(harness.BIN, "assay-runner"), os.path.join(harness.BIN, "assay-guest")],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.addCleanup(process.stdin.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        process.stdin.write(request)
        process.stdin.flush()
        with process.stdout:
            return process.stdout.read()

    def test_a_request_that_does_not_parse(self):
        self.assertIn(b"RUNNER_REQUEST_MALFORMED", self.report(struct.pack("<I", 3) + b"\xff\xff\xff"))
        self.assertIn(b"RUNNER_REQUEST_MALFORMED", self.report(struct.pack("<I", 0xffffffff)))

    def test_a_request_whose_artifacts_are_not_there(self):
        self.assertIn(b"RUNNER_FAILED", self.report(struct.pack("<I", 0)))


class SickWorker(unittest.TestCase):
    """What fails for the machine's reasons is never the candidate's COMPILE_ERROR."""

    def test_disk_full_while_building(self):
        directory = tempfile.mkdtemp(prefix="assay-test.")
        self.addCleanup(shutil.rmtree, directory, ignore_errors=True)
        mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64m", "tmpfs", directory],
                                 stderr=subprocess.DEVNULL, check=False)
        if mounted.returncode != 0:
            self.skipTest("cannot mount a small tmpfs here")
        self.addCleanup(subprocess.run, ["umount", "-l", directory], check=False)
        service = harness.Service(worker=False)
        self.addCleanup(service.close)
        service.start_worker("sick", state=directory)
        with open(os.path.join(directory, "filler"), "wb", buffering=0) as file:
            try:
                while True:
                    file.write(b"x" * 4096)
            except OSError:
                pass
        code, objects = service.json("submit", harness.candidate("vector_add", "plain"), "--level", "verify")
        self.assertEqual(code, 0)
        name = objects[0]["name"]

        def given_back():
            _, shown = service.json("evaluations", "show", name)
            return shown[0] if shown[0]["attempt_count"] >= 1 and shown[0]["state"] != "RUNNING" else None

        evaluation = harness.wait_until(given_back, "the attempt to end", seconds=120)
        self.assertIn(evaluation["state"], ("QUEUED", "FAILED"))
        self.assertFalse(evaluation.get("outcome"))
        # A healthy worker takes it.
        service.worker.kill()
        os.unlink(os.path.join(directory, "filler"))
        service.start_worker("healthy")
        code, out = service.cli("evaluations", "watch", name, "--timeout", "120")
        self.assertEqual(code, 0, out)


if __name__ == "__main__":
    unittest.main(verbosity=2)
