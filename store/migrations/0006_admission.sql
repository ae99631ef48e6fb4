-- Results rank where an audit ADMITTED (1) that version of the problem: neither refused nor never audited.
DROP VIEW v_leaderboard;
CREATE VIEW v_leaderboard AS
WITH ranked AS (
  SELECT r.*,
         COALESCE(c.clone_of, c.id) AS code_id,
         MIN(CASE WHEN r.confirmation > 0 THEN r.median_ns END) OVER (
           PARTITION BY r.problem_id, r.workload, r.device_class, r.contract) AS first_ns
  FROM results AS r
  JOIN candidates AS c ON c.id = r.candidate_id
  WHERE r.level = 3 AND r.verdict = 1 AND r.suspect = 0 AND r.ranks = 1 AND r.median_ns > 0
    AND r.problem_version =
        (SELECT MAX(v.version) FROM problem_versions AS v WHERE v.problem_id = r.problem_id)
    AND EXISTS (SELECT 1 FROM problem_audits AS a
                WHERE a.problem_id = r.problem_id AND a.version = r.problem_version AND a.state = 1)
),
marked AS (
  SELECT *,
         confirmation = 0 AND (first_ns IS NULL OR median_ns <= first_ns) AS pending
  FROM ranked
),
numbered AS (
  SELECT *,
         ROW_NUMBER() OVER (
           PARTITION BY problem_id, workload, device_class, contract, code_id, pending
           ORDER BY median_ns, evaluation_id) AS nth,
         FIRST_VALUE(code_id) OVER (
           PARTITION BY problem_id, workload, device_class, contract
           ORDER BY pending, median_ns, evaluation_id) AS first_code_id
  FROM marked
),
best AS (
  SELECT *
  FROM numbered
  WHERE nth = 1 AND NOT (pending AND first_ns IS NOT NULL AND code_id = first_code_id)
)
SELECT CASE WHEN b.pending THEN 0
            ELSE ROW_NUMBER() OVER (
              PARTITION BY b.problem_id, b.workload, b.device_class, b.contract, b.pending
              ORDER BY b.median_ns, b.evaluation_id) END AS rank,
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
       b.problem_version AS problem_version,
       b.contract AS contract,
       CASE WHEN b.pending THEN 'PENDING'
            WHEN b.confirmation = 3 THEN 'CONFIRMED'
            ELSE 'NOT_NEEDED' END AS confirmation,
       b.confirmed_by AS confirmed_by
FROM best AS b
JOIN problems AS p ON p.id = b.problem_id
JOIN candidates AS c ON c.id = b.candidate_id
JOIN evaluations AS e ON e.id = b.evaluation_id;
