#!/usr/bin/env python3
"""Executes every panel and variable query of the dashboards on a real published copy and a real Prometheus, empty and filled.

The dashboards have not been opened in a running Grafana here; this is what a Grafana would ask its data sources.
"""

import glob
import json
import os
import re
import shutil
import sqlite3
import subprocess
import tempfile
import time
import unittest
import urllib.parse
import urllib.request

import harness

DASHBOARDS = os.path.join(harness.SOURCE, "dashboards")
DOCUMENTS = sorted(glob.glob(os.path.join(DASHBOARDS, "grafana", "*.json")))
KNOWN_UNITS = {"none", "short", "ns", "s", "ops", "percentunit", "dateTimeAsIso"}


def load(path):
    with open(path, encoding="utf-8") as file:
        return json.load(file)


def targets(document):
    for panel in document["panels"]:
        for target in panel["targets"]:
            yield panel, target


def expand(query, variables, now):
    """What Grafana puts for variables and global macros."""
    query = query.replace("$__from", str(int((now - 86400) * 1000))).replace("$__to", str(int((now + 60) * 1000)))
    query = query.replace("$__rate_interval", "1m")
    return re.sub(r"\$\{(\w+)\}", lambda match: variables[match.group(1)], query)


class Rules(unittest.TestCase):
    """What can be said of the documents alone."""

    def test_documents(self):
        self.assertGreaterEqual(len(DOCUMENTS), 2)
        uids = set()
        for path in DOCUMENTS:
            document = load(path)
            uids.add(document["uid"])
            self.assertLessEqual(len(document["uid"]), 40)
            self.assertIsNone(document["id"])
            self.assertFalse(document["editable"])
            kinds = [v["query"] for v in document["templating"]["list"] if v["type"] == "datasource"]
            self.assertEqual(len(kinds), len(set(kinds)))
            ids = [panel["id"] for panel in document["panels"]]
            self.assertEqual(len(ids), len(set(ids)))
            cells = set()
            for panel in document["panels"]:
                self.assertTrue(panel["title"] and panel["description"], panel)
                place = panel["gridPos"]
                self.assertLessEqual(place["x"] + place["w"], 24)
                own = {(x, y) for x in range(place["x"], place["x"] + place["w"])
                       for y in range(place["y"], place["y"] + place["h"])}
                self.assertFalse(cells & own, "panel %s overlaps another" % panel["title"])
                cells |= own
                units = [panel["fieldConfig"]["defaults"]["unit"]]
                units += [p["value"] for o in panel["fieldConfig"]["overrides"] for p in o["properties"]
                          if p["id"] == "unit"]
                self.assertLessEqual(set(units), KNOWN_UNITS)
            for _, target in targets(document):
                if "expr" in target and "rate(" in target["expr"]:
                    self.assertIn("$__rate_interval", target["expr"])
                if "queryText" in target:
                    self.assertEqual(target["queryText"], target["rawQueryText"])
        self.assertEqual(len(uids), len(DOCUMENTS))


class Sql(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.service = harness.Service(publish=True, metrics=True)

    @classmethod
    def tearDownClass(cls):
        cls.service.close()

    def rows(self, query):
        # Read-only and immutable: a reader never touches the file, and needs no other beside it.
        database = sqlite3.connect("file:%s?mode=ro&immutable=1" % self.service.published, uri=True)
        try:
            cursor = database.execute(query)
            return [column[0] for column in cursor.description], cursor.fetchall()
        finally:
            database.close()

    def run_all(self, variables):
        """Every SQL query; title to rows."""
        out = {}
        now = time.time()
        for path in DOCUMENTS:
            document = load(path)
            for variable in document["templating"]["list"]:
                if variable["type"] == "query":
                    out["variable " + variable["name"]] = self.rows(expand(variable["query"], variables, now))[1]
            for panel, target in targets(document):
                if "queryText" not in target:
                    continue
                columns, rows = self.rows(expand(target["queryText"], variables, now))
                for column in target["timeColumns"]:
                    self.assertIn(column, columns)
                for override in panel["fieldConfig"]["overrides"]:
                    self.assertIn(override["matcher"]["options"], columns, panel["title"])
                out[panel["title"]] = rows
        return out

    def published_after(self, moment):
        harness.wait_until(lambda: os.path.exists(self.service.published)
                           and os.stat(self.service.published).st_mtime > moment, "a published copy")

    def test_1_empty(self):
        self.published_after(0)
        out = self.run_all({"problem": "x", "workload": "x", "device_class": "x", "datasource": "", "prometheus": ""})
        self.assertEqual(out["Leaderboard"], [])
        self.assertEqual(out["variable problem"], [])
        self.assertGreater(len(out), 6)

    def test_2_filled(self):
        for name in ("plain", "avx2"):
            self.service.judge_ranked(harness.candidate("gelu", name), "--workload", "n=4096")
        wrong = os.path.join(self.service.directory, "wrong.cc")
        with open(wrong, "w", encoding="utf-8") as file:
            file.write("void gelu(const float* x, float* y, int64_t n) {}\n")
        self.service.judge(wrong, "--problem", "gelu", "--level", "verify")
        self.published_after(time.time() + 1)
        _, leaderboard = self.service.json("leaderboard", "gelu")
        device_class = leaderboard[0]["entries"][0]["device_class"]
        problem = self.rows("SELECT DISTINCT problem FROM v_leaderboard")[1][0][0]
        out = self.run_all({"problem": problem, "workload": "n=4096", "device_class": device_class})
        self.assertEqual([row[:2] for row in out["Leaderboard"]], [
            (entry["rank"], entry["candidate_label"]) for entry in leaderboard[0]["entries"]])
        for title in ("variable problem", "variable workload", "variable device_class", "History", "Best so far", "Verdicts",
                      "Latest that did not pass", "Workers", "Evaluations by state"):
            self.assertTrue(out[title], title)
        self.assertIn("INCORRECT", {row[0] for row in out["Verdicts"]})
        self.check_prometheus()

    def check_prometheus(self):
        """The server's own metrics page, turned into blocks of a real Prometheus, answers every PromQL query."""
        if shutil.which("prometheus") is None or shutil.which("promtool") is None:
            self.skipTest("prometheus is not installed")
        with urllib.request.urlopen("http://%s/metrics" % self.service.metrics_address) as page:
            text = page.read().decode()
        checked = subprocess.run(["promtool", "check", "metrics"], input=text.encode(), stdout=subprocess.PIPE,
                                 stderr=subprocess.STDOUT, check=False)
        self.assertEqual(checked.returncode, 0, checked.stdout.decode())
        with tempfile.TemporaryDirectory(prefix="assay-test.") as directory:
            now = int(time.time()) - 600
            self.write_blocks(text, now, directory)
            for filled in (True, False):
                self.query_prometheus(os.path.join(directory, "data" if filled else "empty"), directory, now, filled)

    def write_blocks(self, text, now, directory):
        """Two scrapes a minute for five minutes before `now`."""
        families, kinds = {}, {}
        for line in text.splitlines():
            if line.startswith("# TYPE "):
                _, _, name, kind = line.split()
                kinds[name] = kind
            if line.startswith("#") or not line:
                continue
            name = re.match(r"[a-zA-Z_:][a-zA-Z0-9_:]*", line).group(0)
            family = next((f for f in kinds if name in (f, f + "_bucket", f + "_sum", f + "_count")), name)
            families.setdefault(family, []).append(line)
        families["up"] = ['up{job="assay"} 1']
        kinds["up"] = "gauge"
        path = os.path.join(directory, "metrics.txt")
        with open(path, "w", encoding="utf-8") as file:
            for family, lines in families.items():
                # OpenMetrics names a counter's family without its suffix.
                file.write("# TYPE %s %s\n" % (re.sub("_total$", "", family), kinds.get(family, "unknown")))
                for line in lines:
                    for step in range(10):
                        file.write("%s %d\n" % (line, now - 300 + 30 * step))
            file.write("# EOF\n")
        done = subprocess.run(["promtool", "tsdb", "create-blocks-from", "openmetrics", path,
                               os.path.join(directory, "data")], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              check=False)
        self.assertEqual(done.returncode, 0, done.stdout.decode())

    def query_prometheus(self, data, directory, now, filled):
        server = harness.Process(["prometheus", "--config.file=" + os.devnull, "--storage.tsdb.path=" + data,
                                  "--web.listen-address=127.0.0.1:0", "--log.format=json"], directory)
        try:
            def address():
                match = re.search(r'"address":"(127\.0\.0\.1:[1-9]\d*)"', server.tail())
                return match and match.group(1)

            base = "http://" + harness.wait_until(address, "Prometheus to listen")

            def ready():
                try:
                    return urllib.request.urlopen(base + "/-/ready").status == 200
                except OSError:
                    return False

            harness.wait_until(ready, "Prometheus to be ready")
            answers = 0
            for path in DOCUMENTS:
                for panel, target in targets(load(path)):
                    if "expr" not in target:
                        continue
                    query = {"query": expand(target["expr"], {}, now), "time": now - 60}
                    with urllib.request.urlopen(base + "/api/v1/query?" + urllib.parse.urlencode(query)) as answer:
                        body = json.load(answer)
                    self.assertEqual(body["status"], "success", panel["title"])
                    if filled:
                        self.assertTrue(body["data"]["result"], "%s: %s gives nothing" % (panel["title"], target["expr"]))
                    answers += 1
            self.assertGreater(answers, 8)
        finally:
            server.kill()


if __name__ == "__main__":
    unittest.main(verbosity=2)
