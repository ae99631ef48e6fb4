"""Runs the real binaries on loopback for the integration tests. Needs ASSAY_BIN_DIR and ASSAY_SOURCE_DIR."""

import json
import os
import select
import shutil
import signal
import subprocess
import tempfile
import threading
import time

BIN = os.environ["ASSAY_BIN_DIR"]
SOURCE = os.environ["ASSAY_SOURCE_DIR"]
PROBLEMS = os.path.join(SOURCE, "kernels", "problems")
START_SECONDS = 240
COMMAND_SECONDS = 600


def candidate(problem, name):
    """Path of a shipped candidate: a single file or a folder."""
    base = os.path.join(PROBLEMS, problem, "candidates", name)
    return base if os.path.isdir(base) else base + ".cc"


def pause(seconds):
    """Between two looks at another process. Nothing may depend on its length."""
    threading.Event().wait(seconds)


def wait_until(condition, what, seconds=60):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        value = condition()
        if value:
            return value
        pause(0.02)
    raise AssertionError("not within %d s: %s" % (seconds, what))


class Process:
    """A child whose stdout is read line by line; stderr goes to a file."""

    def __init__(self, arguments, directory):
        self.log_path = os.path.join(directory, os.path.basename(arguments[0]) + ".%d.log" % time.monotonic_ns())
        self.log = open(self.log_path, "wb")
        self.popen = subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=self.log, stdin=subprocess.DEVNULL)
        self.buffer = b""

    def wait_for_line(self, prefix, seconds=START_SECONDS):
        end = time.monotonic() + seconds
        fd = self.popen.stdout.fileno()
        while time.monotonic() < end:
            while b"\n" in self.buffer:
                line, self.buffer = self.buffer.split(b"\n", 1)
                if line.decode().startswith(prefix):
                    return line.decode()[len(prefix):]
            if select.select([fd], [], [], 0.1)[0]:
                chunk = os.read(fd, 4096)
                if not chunk:
                    raise AssertionError("ended before '%s':\n%s" % (prefix, self.tail()))
                self.buffer += chunk
        raise AssertionError("no '%s' within %d s:\n%s" % (prefix, seconds, self.tail()))

    def tail(self):
        self.log.flush()
        with open(self.log_path, encoding="utf-8", errors="replace") as file:
            return file.read()[-4000:]

    def kill(self):
        if self.popen.poll() is None:
            self.popen.send_signal(signal.SIGKILL)
        self.popen.wait()

    def stop(self, seconds=60):
        """SIGTERM, then the exit code; SIGKILL when that takes too long."""
        if self.popen.poll() is None:
            self.popen.send_signal(signal.SIGTERM)
        try:
            return self.popen.wait(seconds)
        except subprocess.TimeoutExpired:
            self.kill()
            raise AssertionError("did not stop within %d s:\n%s" % (seconds, self.tail()))

    def __del__(self):
        self.kill()
        self.popen.stdout.close()
        self.log.close()


class Service:
    """A data folder with a server and, unless told otherwise, one worker."""

    def __init__(self, worker=True, publish=False, metrics=False, device="cpu", problems=PROBLEMS):
        self.directory = tempfile.mkdtemp(prefix="assay-test.")
        self.data = os.path.join(self.directory, "data")
        self.published = os.path.join(self.directory, "published.db") if publish else None
        self.metrics = metrics
        self.problems = problems
        self.address = "127.0.0.1:0"
        self.server = self.worker = None
        self.start_server()
        if worker:
            self.start_worker(device=device)

    def start_server(self):
        arguments = [os.path.join(BIN, "assay-server"), "--data=" + self.data, "--listen=" + self.address,
                     "--problems=" + self.problems]
        if self.published:
            arguments += ["--publish-db=" + self.published, "--publish-interval-seconds=1"]
        if self.metrics:
            arguments += ["--metrics-listen=127.0.0.1:0"]
        self.server = Process(arguments, self.directory)
        # The same port again after a restart.
        self.address = self.server.wait_for_line("listening ")
        if self.metrics:
            self.metrics_address = self.server.wait_for_line("metrics ")

    def start_worker(self, name="w1", state=None, device="cpu"):
        arguments = [os.path.join(BIN, "assay-worker"), "--server=" + self.address, "--name=" + name,
                     "--calibration=quick", "--device=" + device,
                     # Shared by all tests: the ceilings are measured once, and builds are found again.
                     "--state-dir=" + (state or os.path.join(tempfile.gettempdir(), "assay-test-worker"))]
        self.worker = Process(arguments, self.directory)
        self.worker.wait_for_line("registered ")
        return self.worker

    def close(self):
        for process in (self.worker, self.server):
            if process is not None:
                process.kill()
        shutil.rmtree(self.directory, ignore_errors=True)

    def cli(self, *words, timeout=COMMAND_SECONDS):
        """Exit code and stdout of `assay WORDS`."""
        done = subprocess.run([os.path.join(BIN, "assay"), *words, "--server", self.address], stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=timeout, check=False)
        self.last_stderr = done.stderr.decode(errors="replace")
        return done.returncode, done.stdout.decode()

    def json(self, *words):
        """Exit code and the JSON objects of `assay WORDS --json`, one a line."""
        code, out = self.cli(*words, "--json")
        return code, [json.loads(line) for line in out.splitlines()]

    def judge(self, path, *words):
        """Submits and waits; the finished evaluation."""
        code, objects = self.json("submit", path, "--wait", *words)
        if len(objects) != 1 or "error" in objects[0]:
            raise AssertionError("exit %d: %s %s" % (code, objects, self.last_stderr))
        return objects[0]

    def judge_ranked(self, path, *words):
        """Judges for a leaderboard and waits for the second run, where one is made. On a noisy machine that may be much
        slower, and then the first does not rank: another try, as a submitter would make."""
        for _ in range(4):
            evaluation = self.judge(path, "--level", "ranked", *words)
            second = evaluation["name"] + "-confirmation"
            if self.cli("evaluations", "show", second)[0] != 0:
                return evaluation
            self.cli("evaluations", "watch", second)
            _, objects = self.json("evaluations", "show", evaluation["name"])
            if "Not ranked" not in objects[0]["outcome"]["message"]:
                return evaluation
        raise AssertionError(objects[0]["outcome"]["message"])

    def verify_words(self, problem):
        """Arguments that verify a candidate: on all workloads, or on a small one where everything is slow."""
        words = ["--level", "verify"]
        if os.environ.get("ASSAY_TEST_SMALL"):
            _, problems = self.json("problems", "show", problem)
            words += ["--workload", next(w["name"] for w in problems[0]["workloads"] if w["verify_only"])]
        return words
