-- Tables. Times are Unix nanoseconds; names are resource names as in the API; `proto` columns hold
-- the serialized message that restores the resource, the other columns are its projection for
-- queries. Large parts that lists never read stand in columns at the end of a row or in tables of
-- their own.

-- Names of enum values for the views; filled from the API's descriptors whenever the store opens.
CREATE TABLE enum_names (
  kind TEXT NOT NULL,
  number INTEGER NOT NULL,
  name TEXT NOT NULL,
  PRIMARY KEY (kind, number)
) STRICT, WITHOUT ROWID;

CREATE TABLE problems (
  id INTEGER PRIMARY KEY,
  name TEXT NOT NULL UNIQUE
) STRICT;

CREATE TABLE problem_versions (
  problem_id INTEGER NOT NULL REFERENCES problems (id),
  version INTEGER NOT NULL,
  digest TEXT NOT NULL,
  create_time INTEGER NOT NULL,
  proto BLOB NOT NULL,  -- Problem without files
  files BLOB NOT NULL,  -- Problem with nothing but files
  PRIMARY KEY (problem_id, version),
  UNIQUE (problem_id, digest)
) STRICT;

CREATE TABLE candidates (
  id INTEGER PRIMARY KEY,
  name TEXT NOT NULL UNIQUE,
  problem TEXT NOT NULL,
  label TEXT NOT NULL,
  author TEXT NOT NULL,
  model TEXT NOT NULL,
  create_time INTEGER NOT NULL,
  proto BLOB NOT NULL,  -- Candidate without files
  files BLOB NOT NULL   -- Candidate with nothing but files
) STRICT;
CREATE INDEX candidates_by_problem ON candidates (problem);

CREATE TABLE evaluations (
  id INTEGER PRIMARY KEY,  -- order of creation
  name TEXT NOT NULL UNIQUE,
  problem_id INTEGER NOT NULL REFERENCES problems (id),
  problem_version INTEGER NOT NULL,  -- newest at creation, then the one that was leased
  candidate_id INTEGER NOT NULL REFERENCES candidates (id),
  baseline_candidate_id INTEGER REFERENCES candidates (id),
  device_class TEXT NOT NULL,  -- as asked for
  label TEXT NOT NULL,
  level INTEGER NOT NULL,
  state INTEGER NOT NULL,
  verdict INTEGER NOT NULL,    -- 0 without outcome
  reason TEXT NOT NULL,        -- of the outcome, or of the infrastructure error
  attempt_count INTEGER NOT NULL DEFAULT 0,
  fence INTEGER NOT NULL DEFAULT 0,
  revision INTEGER NOT NULL,
  answered INTEGER NOT NULL,   -- 1: a stored result answered it, nothing was run
  worker TEXT,                 -- of the last lease
  ran_device_class TEXT,       -- exact class of the completed attempt
  create_time INTEGER NOT NULL,
  update_time INTEGER NOT NULL,
  complete_time INTEGER,
  identity TEXT,               -- of what was run; only completed ones have it
  request_id TEXT,
  request_digest TEXT,
  proto BLOB NOT NULL,         -- Evaluation without samples and logs
  FOREIGN KEY (problem_id, problem_version) REFERENCES problem_versions (problem_id, version)
) STRICT;
CREATE INDEX evaluations_by_state ON evaluations (state);
CREATE INDEX evaluations_by_problem ON evaluations (problem_id);
CREATE INDEX evaluations_by_candidate ON evaluations (candidate_id);
CREATE INDEX evaluations_by_identity ON evaluations (identity) WHERE identity IS NOT NULL;
CREATE UNIQUE INDEX evaluations_by_request ON evaluations (request_id) WHERE request_id IS NOT NULL;

CREATE TABLE logs (
  evaluation_id INTEGER PRIMARY KEY REFERENCES evaluations (id),
  build_log TEXT NOT NULL,
  output_log TEXT NOT NULL
) STRICT;

-- Raw samples, written once and never edited.
CREATE TABLE samples (
  evaluation_id INTEGER NOT NULL REFERENCES evaluations (id),
  workload_index INTEGER NOT NULL,
  runner_index INTEGER NOT NULL,
  warm_ns BLOB NOT NULL,  -- little-endian float64, in order of measurement
  cold_ns BLOB NOT NULL,
  rest BLOB NOT NULL,     -- RunnerSamples without warm_ns and cold_ns
  PRIMARY KEY (evaluation_id, workload_index, runner_index)
) STRICT;

-- One row for each workload of each completed evaluation; NULL where nothing was measured.
CREATE TABLE results (
  evaluation_id INTEGER NOT NULL REFERENCES evaluations (id),
  workload_index INTEGER NOT NULL,
  problem_id INTEGER NOT NULL REFERENCES problems (id),
  problem_version INTEGER NOT NULL,
  workload TEXT NOT NULL,
  device_class TEXT NOT NULL,
  candidate_id INTEGER NOT NULL REFERENCES candidates (id),
  level INTEGER NOT NULL,
  verdict INTEGER NOT NULL,
  suspect INTEGER NOT NULL,
  median_ns REAL,
  q1_ns REAL,
  q3_ns REAL,
  efficiency_ratio REAL,
  bound TEXT NOT NULL,
  runner_spread_ratio REAL,
  baseline TEXT NOT NULL,  -- the fastest one; empty: none
  speedup_ratio REAL,
  complete_time INTEGER NOT NULL,
  PRIMARY KEY (evaluation_id, workload_index)
) STRICT;
-- What ranks: level RANKED (3), verdict PASSED (1), no suspicion.
CREATE INDEX results_ranked
  ON results (problem_id, problem_version, workload, device_class, median_ns, evaluation_id)
  WHERE level = 3 AND verdict = 1 AND suspect = 0 AND median_ns > 0;

CREATE TABLE workers (
  name TEXT PRIMARY KEY,
  state INTEGER NOT NULL,
  device_class TEXT NOT NULL,  -- of its devices, joined by ','
  model TEXT NOT NULL,
  version TEXT NOT NULL,
  last_seen_time INTEGER NOT NULL,
  completed_count INTEGER NOT NULL,
  infrastructure_failure_count INTEGER NOT NULL,
  proto BLOB NOT NULL
) STRICT, WITHOUT ROWID;

-- Kept for ever: measurements refer to them by name.
CREATE TABLE calibrations (
  name TEXT PRIMARY KEY,
  device TEXT NOT NULL,
  device_class TEXT NOT NULL,
  measure_time INTEGER NOT NULL,
  proto BLOB NOT NULL
) STRICT;
