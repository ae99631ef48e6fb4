-- The views that dashboards read; SCHEMA.md describes them. Columns are only ever added.

CREATE VIEW v_leaderboard AS
WITH best AS (
  SELECT r.*,
         ROW_NUMBER() OVER (
           PARTITION BY r.problem_id, r.workload, r.device_class, r.candidate_id
           ORDER BY r.median_ns, r.evaluation_id) AS nth
  FROM results AS r
  WHERE r.level = 3 AND r.verdict = 1 AND r.suspect = 0 AND r.median_ns > 0
    AND r.problem_version =
        (SELECT MAX(v.version) FROM problem_versions AS v WHERE v.problem_id = r.problem_id)
)
SELECT ROW_NUMBER() OVER (
         PARTITION BY b.problem_id, b.workload, b.device_class
         ORDER BY b.median_ns, b.evaluation_id) AS rank,
       p.name AS problem,
       b.workload AS workload,
       b.device_class AS device_class,
       c.name AS candidate,
       CASE e.label WHEN '' THEN c.label ELSE e.label END AS label,
       c.author AS author,
       c.model AS model,
       b.median_ns AS median_ns,
       b.q1_ns AS q1_ns,
       b.q3_ns AS q3_ns,
       b.efficiency_ratio AS efficiency_ratio,
       b.bound AS bound,
       b.runner_spread_ratio AS runner_spread_ratio,
       b.baseline AS baseline,
       b.speedup_ratio AS speedup_ratio,
       e.name AS evaluation,
       b.complete_time / 1000000000 AS complete_time,
       b.problem_version AS problem_version
FROM best AS b
JOIN problems AS p ON p.id = b.problem_id
JOIN candidates AS c ON c.id = b.candidate_id
JOIN evaluations AS e ON e.id = b.evaluation_id
WHERE b.nth = 1;

CREATE VIEW v_evaluation_history AS
SELECT e.complete_time / 1000000000 AS complete_time,
       e.name AS evaluation,
       p.name AS problem,
       e.problem_version AS problem_version,
       r.workload AS workload,
       COALESCE(e.ran_device_class, e.device_class) AS device_class,
       c.name AS candidate,
       CASE e.label WHEN '' THEN c.label ELSE e.label END AS label,
       c.author AS author,
       c.model AS model,
       l.name AS level,
       s.name AS state,
       CASE e.verdict WHEN 0 THEN NULL ELSE v.name END AS verdict,
       e.reason AS reason,
       r.suspect AS suspect,
       r.median_ns AS median_ns,
       r.q1_ns AS q1_ns,
       r.q3_ns AS q3_ns,
       r.efficiency_ratio AS efficiency_ratio,
       r.bound AS bound,
       r.runner_spread_ratio AS runner_spread_ratio,
       r.baseline AS baseline,
       r.speedup_ratio AS speedup_ratio,
       e.worker AS worker,
       e.create_time / 1000000000 AS create_time
FROM evaluations AS e
JOIN problems AS p ON p.id = e.problem_id
JOIN candidates AS c ON c.id = e.candidate_id
LEFT JOIN results AS r ON r.evaluation_id = e.id
LEFT JOIN enum_names AS l ON l.kind = 'level' AND l.number = e.level
LEFT JOIN enum_names AS s ON s.kind = 'state' AND s.number = e.state
LEFT JOIN enum_names AS v ON v.kind = 'verdict' AND v.number = e.verdict
WHERE e.complete_time IS NOT NULL AND e.answered = 0;

CREATE VIEW v_verdicts AS
SELECT e.complete_time / 86400000000000 * 86400 AS day,
       p.name AS problem,
       n.name AS verdict,
       e.reason AS reason,
       COUNT(*) AS evaluations,
       SUM(e.answered) AS answered
FROM evaluations AS e
JOIN problems AS p ON p.id = e.problem_id
LEFT JOIN enum_names AS n ON n.kind = 'verdict' AND n.number = e.verdict
WHERE e.state = 3
GROUP BY 1, 2, 3, 4;

CREATE VIEW v_workers AS
SELECT w.name AS name,
       n.name AS state,
       w.device_class AS device_class,
       w.model AS model,
       w.last_seen_time / 1000000000 AS last_seen,
       w.completed_count AS completed,
       w.infrastructure_failure_count AS infrastructure_failures,
       w.version AS version
FROM workers AS w
LEFT JOIN enum_names AS n ON n.kind = 'worker_state' AND n.number = w.state;

CREATE VIEW v_queue AS
SELECT n.name AS state,
       (SELECT COUNT(*) FROM evaluations AS e WHERE e.state = n.number) AS evaluations
FROM enum_names AS n
WHERE n.kind = 'state' AND n.number > 0;
