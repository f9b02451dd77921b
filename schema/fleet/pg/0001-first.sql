-- SPDX-License-Identifier: Apache-2.0
-- A fleet's history in PostgreSQL: the tables of schema/fleet/sqlite/0001-first.sql, whose comments
-- hold here too. What differs: `run` has timestamps, real[] and partitions by month. Months are
-- made when they are needed; what was measured before 2020 is in run_older.
-- Rules that keep a distributed database possible (tests/unit/fleet/test_sql.py): a unique key of
-- `run` would have node and measured; `run` refers to no table; no set-returning function in FROM.

CREATE TABLE meta (name text PRIMARY KEY, value bigint NOT NULL);
INSERT INTO meta VALUES ('version', 1), ('runs', 0), ('arrived', 0);
CREATE TABLE identity (history text PRIMARY KEY);
INSERT INTO identity VALUES (replace(gen_random_uuid()::text, '-', ''));
CREATE TABLE skipped (low bigint PRIMARY KEY, high bigint NOT NULL);

CREATE TABLE node (
  id int PRIMARY KEY,
  name text NOT NULL UNIQUE,
  url text NOT NULL DEFAULT '',
  source text NOT NULL DEFAULT '',
  note text NOT NULL DEFAULT '',
  since_ms bigint NOT NULL
);
CREATE TABLE feed (
  id int PRIMARY KEY,
  node int NOT NULL,
  twin int NOT NULL DEFAULT 0,
  history text NOT NULL UNIQUE,
  next bigint NOT NULL,
  first_ms bigint NOT NULL,
  last_ms bigint NOT NULL,
  skew_ms bigint NOT NULL,
  version text NOT NULL,
  state int2 NOT NULL,
  top bigint NOT NULL DEFAULT 0
) WITH (fillfactor = 70);
CREATE TABLE collector (
  id int PRIMARY KEY,
  name text NOT NULL UNIQUE,
  history text NOT NULL,
  next bigint NOT NULL,
  first_ms bigint NOT NULL,
  last_ms bigint NOT NULL,
  skew_ms bigint NOT NULL,
  version text NOT NULL,
  stored bigint NOT NULL,
  others bigint NOT NULL,
  lost bigint NOT NULL
);
CREATE TABLE layout (
  id int PRIMARY KEY,
  origin int NOT NULL,
  hash text NOT NULL UNIQUE,
  metrics json NOT NULL
);
CREATE TABLE kind (
  id int PRIMARY KEY,
  origin int NOT NULL,
  layout int NOT NULL,
  metrics_version int NOT NULL,
  n_ranks bigint NOT NULL,
  benchmark text NOT NULL,
  method text NOT NULL,
  variant text NOT NULL,
  UNIQUE (benchmark, method, variant, metrics_version, n_ranks, layout)
);
CREATE TABLE machine (
  id int PRIMARY KEY,
  origin int NOT NULL,
  class text NOT NULL,
  config text NOT NULL,
  topology text NOT NULL,
  UNIQUE (class, config, topology)
);
CREATE TABLE document (hash text PRIMARY KEY, body text NOT NULL);

-- Wide columns first, and the array last: alignment costs no byte, and 21 runs of 30 metrics fit a
-- page. w has the bytes that SQLite has. As an array it would cost a call per element in each
-- reading. No key says that a run is there once: the place of its feed does, which moves in the same
-- transaction. A unique index would take 60 bytes a run. The one on node and kind takes 10, because
-- entries of the same node and kind are one.
-- Rows of a month lie in the order of their arrival, so that ranges of blocks find it.
CREATE TABLE run (
  arrival bigint NOT NULL,
  measured timestamptz NOT NULL,
  received timestamptz NOT NULL,
  finished timestamptz,
  seq bigint NOT NULL,
  run bigint NOT NULL,
  seconds float8,
  node int NOT NULL,
  feed int NOT NULL,
  kind int NOT NULL,
  machine int NOT NULL,
  state int2 NOT NULL,
  flags int2 NOT NULL,
  disturbed int2,
  label text NOT NULL,
  w bytea,
  v real[]
) PARTITION BY RANGE (measured);
CREATE INDEX run_node ON run (node, kind);
CREATE INDEX run_measured ON run USING brin (measured, arrival)
  WITH (pages_per_range = 32, autosummarize = on);
CREATE TABLE run_older PARTITION OF run FOR VALUES FROM (MINVALUE) TO ('2020-01-01T00:00:00Z');

CREATE TABLE span (
  node int NOT NULL,
  kind int NOT NULL,
  class int NOT NULL,
  first_month int NOT NULL,
  last_month int NOT NULL,
  PRIMARY KEY (node, kind, class)
);
CREATE TABLE note (
  arrival bigint PRIMARY KEY,
  node int NOT NULL,
  feed int NOT NULL,
  seq bigint NOT NULL,
  run bigint NOT NULL,
  noted bigint NOT NULL,
  label text NOT NULL,
  baseline int2 NOT NULL
);
CREATE INDEX note_of ON note (node, feed, seq, noted);
CREATE TABLE archive (
  node int NOT NULL,
  feed int NOT NULL,
  seq bigint NOT NULL,
  run bigint NOT NULL,
  state int2 NOT NULL,
  tries int NOT NULL,
  due_ms bigint NOT NULL,
  bytes bigint NOT NULL,
  why text NOT NULL,
  cited int2 NOT NULL DEFAULT 0,
  body bytea,
  PRIMARY KEY (node, feed, seq)
);
ALTER TABLE archive ALTER body SET STORAGE EXTERNAL; -- it is compressed
CREATE INDEX archive_due ON archive (state, due_ms);
CREATE TABLE setup (
  node int NOT NULL,
  from_ms bigint NOT NULL,
  until_ms bigint,
  machine int NOT NULL,
  PRIMARY KEY (node, from_ms)
);
CREATE TABLE finding (
  id bigint PRIMARY KEY,
  identity text NOT NULL UNIQUE,
  what text NOT NULL,
  node text NOT NULL,
  class text NOT NULL,
  metric text NOT NULL,
  text text NOT NULL,
  state int NOT NULL,
  grade int NOT NULL,
  percent float8,
  lo float8,
  hi float8,
  times int NOT NULL,
  misses int NOT NULL,
  found_ms bigint NOT NULL,
  seen_ms bigint NOT NULL,
  opened_ms bigint NOT NULL,
  closed_ms bigint NOT NULL,
  marked_ms bigint NOT NULL,
  since_ms bigint NOT NULL,
  proof bigint NOT NULL,
  "by" text NOT NULL,
  note text NOT NULL,
  evidence json NOT NULL,
  drained_ms bigint NOT NULL DEFAULT 0
);
CREATE TABLE campaign (
  id bigint PRIMARY KEY,
  name text NOT NULL,
  "by" text NOT NULL,
  request json NOT NULL,
  nodes text NOT NULL,
  state int2 NOT NULL,
  round int NOT NULL,
  created_ms bigint NOT NULL,
  round_ms bigint NOT NULL,
  until_ms bigint NOT NULL,
  n int NOT NULL,
  running int NOT NULL,
  done int NOT NULL,
  failed int NOT NULL,
  skipped int NOT NULL,
  spent_s float8 NOT NULL,
  round_s float8 NOT NULL,
  why text NOT NULL
) WITH (fillfactor = 70);
CREATE TABLE campaign_node (
  campaign bigint NOT NULL,
  node int NOT NULL,
  state int2 NOT NULL,
  round int NOT NULL,
  requested_ms bigint NOT NULL,
  ended_ms bigint NOT NULL,
  run bigint NOT NULL,
  seconds float8,
  why text NOT NULL,
  PRIMARY KEY (campaign, node)
);

CREATE VIEW history AS
SELECT node.name AS node, r.measured, kind.benchmark, kind.variant, r.seq,
  layout.metrics -> (r.i - 1) ->> 0 AS metric, layout.metrics -> (r.i - 1) ->> 1 AS unit,
  r.v[r.i] AS value
FROM (SELECT run.*, generate_subscripts(run.v, 1) AS i FROM run) AS r
  JOIN node ON node.id = r.node JOIN kind ON kind.id = r.kind
  JOIN layout ON layout.id = kind.layout;
