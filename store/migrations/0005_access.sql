-- Access: tokens of clients, and the log of what administrators did. Neither is in published copies.

CREATE TABLE tokens (
  name TEXT PRIMARY KEY,
  digest TEXT NOT NULL UNIQUE,  -- SHA-256 of the secret, which is kept nowhere
  proto BLOB NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE access_events (
  number INTEGER PRIMARY KEY,  -- counts up: the newest is never removed
  refused INTEGER NOT NULL,    -- 1: for want of access; counted apart, so that none of these can push out an act
  proto BLOB NOT NULL
) STRICT;
CREATE INDEX access_events_by_kind ON access_events (refused, number);
