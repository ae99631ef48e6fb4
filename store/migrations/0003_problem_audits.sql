-- The newest audit of each version of a problem. Results of a version that it REFUSED (2) do not rank.
CREATE TABLE problem_audits (
  problem_id INTEGER NOT NULL,
  version INTEGER NOT NULL,
  state INTEGER NOT NULL,
  time INTEGER NOT NULL,
  proto BLOB NOT NULL,  -- ProblemAudit
  PRIMARY KEY (problem_id, version),
  FOREIGN KEY (problem_id, version) REFERENCES problem_versions (problem_id, version)
) STRICT, WITHOUT ROWID;
