#!/usr/bin/env python3
"""Writes the Grafana dashboards (classic schema) from the compact descriptions below.

    dashboards/generate.py            writes dashboards/grafana/*.json
    dashboards/generate.py --check    fails when a file is not what would be written

Leaderboards read the SQL views of store/SCHEMA.md from a published copy of the database; service health comes from Prometheus.
"""

import json
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
SQL = {"type": "frser-sqlite-datasource", "uid": "${datasource}"}
PROMETHEUS = {"type": "prometheus", "uid": "${prometheus}"}


def datasource_variable(name, label, kind):
    return {"name": name, "label": label, "type": "datasource", "query": kind, "hide": 0,
            "includeAll": False, "multi": False, "refresh": 1, "current": {}, "options": []}


def sql_variable(name, label, query):
    return {"name": name, "label": label, "type": "query", "datasource": SQL, "query": query, "definition": query,
            "refresh": 2, "sort": 0, "includeAll": False, "multi": False, "hide": 0, "current": {}, "options": []}


def sql_target(query, time_columns=()):
    return {"refId": "A", "datasource": SQL, "rawQueryText": query, "queryText": query,
            "queryType": "time series" if time_columns else "table", "timeColumns": list(time_columns)}


def prometheus_target(query, legend, ref="A", instant=False):
    return {"refId": ref, "datasource": PROMETHEUS, "expr": query, "legendFormat": legend,
            "instant": instant, "range": not instant}


def field_override(name, **properties):
    return {"matcher": {"id": "byName", "options": name},
            "properties": [{"id": key, "value": value} for key, value in properties.items()]}


class Dashboard:
    """Panels are placed left to right, in rows of 24 units."""

    def __init__(self, uid, title, description, variables):
        self.document = {
            "uid": uid, "id": None, "title": title, "description": description, "tags": ["assay"], "timezone": "browser",
            "schemaVersion": 38, "version": 1, "editable": False, "graphTooltip": 1, "refresh": "30s", "links": [],
            "annotations": {"list": []}, "time": {"from": "now-24h", "to": "now"}, "templating": {"list": variables},
            "panels": []}
        self.x = self.y = self.row_height = 0

    def panel(self, kind, title, description, targets, width, height, unit="none", overrides=(), options=None):
        if self.x + width > 24:
            self.x, self.y, self.row_height = 0, self.y + self.row_height, 0
        self.document["panels"].append({
            "id": len(self.document["panels"]) + 1, "type": kind, "title": title, "description": description,
            "datasource": targets[0]["datasource"], "targets": targets,
            "gridPos": {"x": self.x, "y": self.y, "w": width, "h": height},
            "fieldConfig": {"defaults": {"unit": unit, "custom": {}}, "overrides": list(overrides)},
            "options": options or {}, "transformations": []})
        self.x += width
        self.row_height = max(self.row_height, height)


def leaderboard():
    board = Dashboard(
        "assay-leaderboard", "Assay: leaderboard", "Ranked results of one problem, with the distance to the machine's limit",
        [datasource_variable("datasource", "Data Source", "frser-sqlite-datasource"),
         sql_variable("problem", "Problem", "SELECT DISTINCT problem FROM v_leaderboard ORDER BY problem"),
         sql_variable("workload", "Workload",
                      "SELECT DISTINCT workload FROM v_leaderboard WHERE problem = '${problem}' ORDER BY workload"),
         sql_variable("device_class", "Device class",
                      "SELECT DISTINCT device_class FROM v_leaderboard WHERE problem = '${problem}' ORDER BY device_class")])
    where = "problem = '${problem}' AND workload = '${workload}' AND device_class = '${device_class}'"
    board.panel(
        "table", "Leaderboard", "Best ranked result of each candidate; efficiency is ceiling time over measured time",
        [sql_target("SELECT rank, label, author, model, median_ns, q1_ns, q3_ns, efficiency_ratio, bound, "
                    "runner_spread_ratio, baseline, speedup_ratio, evaluation, complete_time * 1000 AS complete_time, "
                    "contract, confirmation FROM v_leaderboard WHERE " + where
                    + " ORDER BY contract, rank <> 1, rank, median_ns")],
        24, 10,
        overrides=[field_override("median_ns", unit="ns", displayName="median"),
                   field_override("q1_ns", unit="ns", displayName="lower quartile"),
                   field_override("q3_ns", unit="ns", displayName="upper quartile"),
                   field_override("efficiency_ratio", unit="percentunit", displayName="of limit", min=0, max=1,
                                  **{"custom.cellOptions": {"type": "gauge", "mode": "basic"}}),
                   field_override("runner_spread_ratio", unit="percentunit", displayName="spread between runners"),
                   field_override("speedup_ratio", unit="none", decimals=2, displayName="speedup over baseline"),
                   field_override("complete_time", unit="dateTimeAsIso", displayName="measured")])
    board.panel(
        "timeseries", "History", "Median of every measured evaluation over time, one line for each candidate",
        [sql_target("SELECT complete_time AS time, label AS metric, median_ns AS value FROM v_evaluation_history WHERE "
                    + where + " AND median_ns > 0 AND complete_time BETWEEN $__from / 1000 AND $__to / 1000 "
                    "ORDER BY complete_time", ["time"])],
        12, 9, unit="ns")
    board.panel(
        "timeseries", "Best so far", "The best median up to each point in time",
        [sql_target("SELECT complete_time AS time, MIN(median_ns) OVER (ORDER BY complete_time) AS best FROM "
                    "v_evaluation_history WHERE " + where + " AND verdict = 'PASSED' AND median_ns > 0 "
                    "AND complete_time BETWEEN $__from / 1000 AND $__to / 1000 ORDER BY complete_time", ["time"])],
        12, 9, unit="ns")
    board.panel(
        "table", "Verdicts", "How often each verdict was given for the problem on the days of the time range, with its reason",
        [sql_target("SELECT verdict, reason, SUM(evaluations) AS evaluations FROM v_verdicts WHERE problem = '${problem}' "
                    "AND day + 86400 > $__from / 1000 AND day <= $__to / 1000 "
                    "GROUP BY verdict, reason ORDER BY evaluations DESC")],
        12, 9, unit="short")
    board.panel(
        "table", "Latest that did not pass", "The newest evaluations of the problem that did not pass",
        [sql_target("SELECT DISTINCT complete_time * 1000 AS complete_time, label, verdict, reason, evaluation FROM "
                    "v_evaluation_history WHERE problem = '${problem}' AND verdict <> 'PASSED' "
                    "ORDER BY complete_time DESC LIMIT 50")],
        12, 9, overrides=[field_override("complete_time", unit="dateTimeAsIso", displayName="time")])
    return board.document


def fleet():
    board = Dashboard(
        "assay-fleet", "Assay: fleet", "Workers, queue and service health",
        [datasource_variable("datasource", "Data Source", "frser-sqlite-datasource"),
         datasource_variable("prometheus", "Prometheus", "prometheus")])
    for title, description, query, unit in [
            ("Queued", "Evaluations that wait for a worker", "sum(assay_dispatch_queue_evaluations)", "short"),
            ("Running", "Leases that are held now", "sum(assay_dispatch_leased_evaluations)", "short"),
            ("Oldest waits", "Age of the oldest queued evaluation", "max(assay_dispatch_oldest_queued_seconds)", "s"),
            ("Unplaceable", "Queued evaluations that no registered worker can run",
             "sum(assay_dispatch_unplaceable_evaluations)", "short"),
            ("Workers", "Workers that are active", "sum(assay_dispatch_active_workers)", "short"),
            ("Server up", "Whether Prometheus reaches the server", "min(up{job=\"assay\"})", "short")]:
        board.panel("stat", title, description, [prometheus_target(query, title.lower(), instant=True)], 4, 4, unit=unit,
                    options={"reduceOptions": {"calcs": ["lastNotNull"], "fields": "", "values": False}})
    board.panel("timeseries", "Verdicts", "Finished evaluations a second by verdict",
                [prometheus_target("sum by (verdict) (rate(assay_evaluations_completed_total[$__rate_interval]))",
                                   "{{verdict}}")], 12, 8, unit="ops")
    board.panel("timeseries", "Leases", "Leases a second: granted, expired, abandoned, refused for a stale fence",
                [prometheus_target("sum(rate(assay_dispatch_leases_granted_total[$__rate_interval]))", "granted", "A"),
                 prometheus_target("sum(rate(assay_dispatch_leases_expired_total[$__rate_interval]))", "expired", "B"),
                 prometheus_target("sum(rate(assay_dispatch_leases_abandoned_total[$__rate_interval]))", "abandoned", "C"),
                 prometheus_target("sum(rate(assay_dispatch_fenced_calls_total[$__rate_interval]))", "fenced", "D")],
                12, 8, unit="ops")
    board.panel("timeseries", "Calls", "RPCs a second by method and code",
                [prometheus_target("sum by (method, code) (rate(assay_rpc_calls_total[$__rate_interval]))",
                                   "{{method}} {{code}}")], 12, 8, unit="ops")
    board.panel("timeseries", "Call latency", "95th percentile of handling time by method",
                [prometheus_target("histogram_quantile(0.95, sum by (le, method) "
                                   "(rate(assay_rpc_duration_seconds_bucket[$__rate_interval])))", "{{method}}")],
                12, 8, unit="s")
    board.panel("table", "Workers", "Every worker that ever registered, with its device class and counts",
                [sql_target("SELECT name, state, device_class, model, completed, infrastructure_failures, version, "
                            "last_seen * 1000 AS last_seen FROM v_workers ORDER BY name")], 16, 8,
                overrides=[field_override("last_seen", unit="dateTimeAsIso", displayName="last seen")])
    board.panel("table", "Evaluations by state", "All evaluations in the published copy",
                [sql_target("SELECT state, evaluations FROM v_queue ORDER BY state")], 8, 8, unit="short")
    return board.document


def main():
    check = "--check" in sys.argv[1:]
    stale = []
    for document in (leaderboard(), fleet()):
        path = os.path.join(HERE, "grafana", document["uid"] + ".json")
        text = json.dumps(document, indent=2) + "\n"
        if check:
            with open(path, encoding="utf-8") as file:
                if file.read() != text:
                    stale.append(path)
        else:
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
    for path in stale:
        print("%s is stale: run dashboards/generate.py" % path)
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main())
