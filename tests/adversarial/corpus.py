"""The corpus of attacks and honest controls: reads the cases and holds what a running service says of them against what is expected."""

import collections
import os
import shutil
import tempfile

import harness

FOLDER = os.path.join(harness.SOURCE, "tests", "adversarial")
KEYS = ("pattern", "title", "problem", "device", "level", "workloads", "verdict", "reasons", "finding", "note")
SEVERITIES = ("NOTICE", "SUSPECT", "PROOF")
NO_CUDA = ("CUDA_NOT_INSTALLED", "CUDA_TOO_OLD")
REFUSED = "REFUSED"  # before anything runs: a candidate that is not read, a problem that is not admitted
WAIT_SECONDS = 7200


class Case:
    """One folder: a candidate, or a problem that asks for admission, and expected.txt."""

    def __init__(self, slug):
        self.slug = slug
        self.folder = os.path.join(FOLDER, slug)
        with open(os.path.join(self.folder, "expected.txt"), encoding="utf-8") as file:
            words = dict(line.rstrip("\n").split(":", 1) for line in file)
        if tuple(words) != KEYS:
            raise ValueError("%s/expected.txt has the keys %s, not %s" % (slug, ", ".join(words), ", ".join(KEYS)))
        words = {key: value.strip() for key, value in words.items()}
        self.pattern, self.title, self.note = words["pattern"], words["title"], words["note"]
        self.problem, self.device, self.level = words["problem"], words["device"], words["level"]
        self.workloads = [w for w in words["workloads"].split(";") if w]
        self.verdict = words["verdict"]
        self.reasons = [reason.strip() for reason in words["reasons"].split(",")]
        # Detectors of which one must speak, and how loud at least.
        detectors, _, self.severity = words["finding"].partition(" ")
        self.detectors = detectors.split("|") if detectors else []
        self.is_honest = slug.startswith("g") or self.pattern == "-"

    @property
    def is_audit(self):
        return self.device == "audit"

    @property
    def is_measured(self):
        return self.level not in ("verify", "")

    def path(self):
        if os.path.exists(os.path.join(self.folder, "candidate.textproto")):
            return self.folder
        names = [name for name in os.listdir(self.folder) if name.startswith("candidate.")]
        if len(names) != 1:
            raise ValueError("%s has %d candidates" % (self.slug, len(names)))
        return os.path.join(self.folder, names[0])

    def words(self):
        words = ["--device", self.device, "--level", self.level]
        for workload in self.workloads:
            words += ["--workload", workload]
        return words

    def expected(self):
        text = "%s %s" % (self.verdict, "|".join(self.reasons)) if self.verdict != "PASSED" else "PASSED"
        return text + (" + %s %s" % ("|".join(self.detectors), self.severity) if self.detectors else "")


def read_cases():
    names = sorted(os.listdir(FOLDER))
    return [Case(name) for name in names if os.path.exists(os.path.join(FOLDER, name, "expected.txt"))]


class Replay:
    """What one judgement came to."""

    def __init__(self, case, verdict, reason, evidence="", findings=(), nonce="", evaluation=""):
        self.got = "PASSED" if verdict == "PASSED" else "%s %s" % (verdict, reason)
        self.evidence = evidence
        self.nonce = nonce
        self.evaluation = evaluation
        self.is_skipped = reason in NO_CUDA or verdict == "SKIPPED"
        self.fault = "" if self.is_skipped else self.judge(case, verdict, reason, findings)

    @staticmethod
    def judge(case, verdict, reason, findings):
        """Empty when it is what was expected."""
        if verdict != case.verdict or reason not in case.reasons:
            return "verdict"
        loud = [f for f in findings if f["severity"] in SEVERITIES[1:]]
        if case.is_honest and loud:
            return "accused by " + loud[0]["detector"]
        wanted = [f for f in findings if f["detector"] in case.detectors
                  and SEVERITIES.index(f["severity"]) >= SEVERITIES.index(case.severity)]
        return "no finding of " + "|".join(case.detectors) if case.detectors and not wanted else ""


def replay_of(case, evaluation):
    outcome = evaluation.get("outcome")
    if outcome is None:
        error = evaluation.get("infrastructure_error", {})
        return Replay(case, evaluation["state"], error.get("reason", ""), error.get("message", ""), evaluation=evaluation["name"])
    findings = outcome.get("findings", [])
    # The finding that was asked for, else the loudest, else the message.
    order = sorted(findings, key=lambda f: (f["detector"] not in case.detectors, -SEVERITIES.index(f["severity"])))
    evidence = "%s %s: %s" % (order[0]["detector"], order[0]["severity"], order[0]["evidence"]) if order else outcome.get("message", "")
    return Replay(case, outcome["verdict"], outcome["reason"], evidence, findings, outcome.get("nonce", ""), evaluation["name"])


class Result:
    """All replays of a case."""

    def __init__(self, case, replays):
        self.case = case
        self.replays = replays
        self.counts = collections.Counter(replay.got for replay in replays)
        self.faults = [replay for replay in replays if replay.fault]
        self.is_skipped = any(replay.is_skipped for replay in replays)
        self.is_right = bool(replays) and not self.faults and (self.is_skipped or not self.is_flip())

    def is_flip(self):
        """More than one verdict; reasons that are all allowed may differ."""
        return len({got.split(" ")[0] for got in self.counts}) > 1

    def got(self):
        if len(self.counts) == 1:
            return next(iter(self.counts))
        return ", ".join("%d x %s" % (count, got) for got, count in self.counts.most_common())


class Corpus:
    """A service on loopback with the shipped problems and those of the corpus, a worker for the CPU and two emulated devices."""

    def __init__(self):
        self.problems = tempfile.mkdtemp(prefix="assay-adversarial.")
        for source in (harness.PROBLEMS, os.path.join(FOLDER, "problems")):
            shutil.copytree(source, self.problems, dirs_exist_ok=True)
        self.service = harness.Service(worker=False, problems=self.problems)
        self.workers = [self.service.start_worker("host", device="cpu")]

    def start_devices(self):
        for name in ("first", "second"):
            self.workers.append(self.service.start_worker(name, device="emulated:sm_80"))

    def close(self):
        for worker in self.workers:
            worker.kill()
        self.service.close()
        shutil.rmtree(self.problems, ignore_errors=True)

    def run(self, cases, replays):
        """Results in the order of the cases. What is timed runs before the other workers are there."""
        done = {}
        for timed in (True, False):
            if not timed:
                self.start_devices()
            names = {}
            for case in cases:
                if case.is_audit or case.is_measured != timed:
                    continue
                evaluations, refused = self.submit(case, replays)
                done[case.slug] = refused
                for evaluation in evaluations:
                    names[evaluation["name"]] = case
            for evaluation in self.wait(names):
                done[names[evaluation["name"]].slug].append(replay_of(names[evaluation["name"]], evaluation))
        for case in cases:
            if case.is_audit:
                done[case.slug] = [self.audit(case)]
        return [Result(case, done[case.slug]) for case in cases]

    def submit(self, case, replays):
        """Evaluations that were created, and refusals."""
        _, objects = self.service.json("submit", *[case.path()] * replays, *case.words())
        errors = [o["error"] for o in objects if "error" in o]
        if errors and len(errors) == len(objects):
            return [], [Replay(case, REFUSED, e["reason"], e["message"]) for e in errors] * replays
        if errors or len(objects) != replays:
            raise AssertionError("%s was not created: %s %s" % (case.slug, errors, self.service.last_stderr))
        return objects, []

    def wait(self, names):
        if not names:
            return []
        def is_done():
            harness.pause(0.3)
            # A failed attempt goes from running to queued, and back.
            return not any(self.service.json("evaluations", "list", "--limit", "1", "--filter", "state = " + state)[1]
                           for state in ("QUEUED", "RUNNING", "QUEUED"))

        harness.wait_until(is_done, "all evaluations are final", WAIT_SECONDS)
        _, evaluations = self.service.json("evaluations", "list", "--limit", "100000")
        return [e for e in evaluations if e["name"] in names]

    def audit(self, case):
        """A problem that asks for admission."""
        folder = os.path.join(case.folder, "problem")
        code, objects = self.service.json("problems", "create", folder, "--no-audit")
        if code == 0:
            code, objects = self.service.json("problems", "audit", folder)
        if code not in (0, 5):
            raise AssertionError("%s was not audited: %s %s" % (case.slug, self.service.last_stderr.strip(), objects))
        failed = [step["name"] for step in objects[-1]["steps"] if not step.get("passed") and not step.get("skipped")]
        wanted = [name for name in failed if name in case.reasons]
        return Replay(case, REFUSED if code == 5 else "PASSED", wanted[0] if wanted else ", ".join(failed), "failed: " + ", ".join(failed))
