-- The newest audit of each version of a problem. Only results of a version that is ADMITTED (1) rank.
CREATE TABLE problem_audits (
  problem_id INTEGER NOT NULL,
  version INTEGER NOT NULL,
  state INTEGER NOT NULL,
  time INTEGER NOT NULL,
  proto BLOB NOT NULL,  -- ProblemAudit
  PRIMARY KEY (problem_id, version),
  FOREIGN KEY (problem_id, version) REFERENCES problem_versions (problem_id, version)
) STRICT, WITHOUT ROWID;

DROP VIEW v_leaderboard;
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
    AND EXISTS (SELECT 1 FROM problem_audits AS a
                WHERE a.problem_id = r.problem_id AND a.version = r.problem_version AND a.state = 1)
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
