-- SPDX-License-Identifier: Apache-2.0
-- A fleet's history in SQLite. A row of `run` is a run; its values are packed in `v`. The same
-- tables are in schema/fleet/pg. Numbers of nodes, feeds and dictionaries are given by the one
-- writer, from 1 on and without gaps.

-- version: rises with each change. runs: rows of `run`. arrived: the last number of an arrival
CREATE TABLE meta (name TEXT PRIMARY KEY, value INTEGER NOT NULL) STRICT, WITHOUT ROWID;
INSERT INTO meta VALUES ('version', 1), ('runs', 0), ('arrived', 0);
-- Of this collector's own feed, whose places are numbers of arrivals.
CREATE TABLE identity (history TEXT PRIMARY KEY) STRICT, WITHOUT ROWID;
INSERT INTO identity VALUES (lower(hex(randomblob(16))));
-- Numbers low+1 to high were never given to a run: a writer that begins leaves them out, because the
-- newest transactions of the one before may be lost, and others may have read them.
CREATE TABLE skipped (low INTEGER PRIMARY KEY, high INTEGER NOT NULL) STRICT;

CREATE TABLE node (
  id INTEGER PRIMARY KEY,
  name TEXT NOT NULL UNIQUE,
  url TEXT NOT NULL DEFAULT '',
  source TEXT NOT NULL DEFAULT '',
  note TEXT NOT NULL DEFAULT '',
  since_ms INTEGER NOT NULL
) STRICT;

-- next: the number of the history after which the next page begins.
-- state: 0 open, 1 closed, 2 twin (`twin` is the other node). top: the highest number of a run that
-- came through another collector; 0: none did.
CREATE TABLE feed (
  id INTEGER PRIMARY KEY,
  node INTEGER NOT NULL,
  twin INTEGER NOT NULL DEFAULT 0,
  history TEXT NOT NULL UNIQUE,
  next INTEGER NOT NULL,
  first_ms INTEGER NOT NULL,
  last_ms INTEGER NOT NULL,
  skew_ms INTEGER NOT NULL,
  version TEXT NOT NULL,
  state INTEGER NOT NULL,
  top INTEGER NOT NULL DEFAULT 0
) STRICT;
-- Other collectors whose feeds are followed, by the name that their source gives them. next: as of
-- `feed`. others: runs that were left out. lost: runs that were deleted there before they were read.
CREATE TABLE collector (
  id INTEGER PRIMARY KEY,
  name TEXT NOT NULL UNIQUE,
  history TEXT NOT NULL,
  next INTEGER NOT NULL,
  first_ms INTEGER NOT NULL,
  last_ms INTEGER NOT NULL,
  skew_ms INTEGER NOT NULL,
  version TEXT NOT NULL,
  stored INTEGER NOT NULL,
  others INTEGER NOT NULL,
  lost INTEGER NOT NULL
) STRICT;

-- Dictionaries; `origin` is the node that brought the row.
-- metrics: [["latency.local.dram.median_ns","ns"],...]; a metric's position is that of its value
CREATE TABLE layout (
  id INTEGER PRIMARY KEY,
  origin INTEGER NOT NULL,
  hash TEXT NOT NULL UNIQUE,
  metrics TEXT NOT NULL
) STRICT;
-- layout 0: runs without metrics
CREATE TABLE kind (
  id INTEGER PRIMARY KEY,
  origin INTEGER NOT NULL,
  layout INTEGER NOT NULL,
  metrics_version INTEGER NOT NULL,
  n_ranks INTEGER NOT NULL,
  benchmark TEXT NOT NULL,
  method TEXT NOT NULL,
  variant TEXT NOT NULL,
  UNIQUE (benchmark, method, variant, metrics_version, n_ranks, layout)
) STRICT;
-- Hashes of facts and of the topology; '': not known
CREATE TABLE machine (
  id INTEGER PRIMARY KEY,
  origin INTEGER NOT NULL,
  class TEXT NOT NULL,
  config TEXT NOT NULL,
  topology TEXT NOT NULL,
  UNIQUE (class, config, topology)
) STRICT;
CREATE TABLE document (hash TEXT PRIMARY KEY, body TEXT NOT NULL) STRICT, WITHOUT ROWID;

-- arrival: its number among all that were stored. run: the node's number of the run. measured_ms: of its start; if that is
-- not known, of its end or of its arrival (flags 4); by a clock ahead, of its arrival (flags 8).
-- flags also: 1 imported, 2 forced. disturbed: 1e-4. v: big-endian floats (IEEE 754, 4 bytes).
-- w: two big-endian integers per value, how far the interval reaches below and above it, in 1e-4
-- of it, -1 not known; of 2 bytes each, or 4 if w is twice as long as v.
CREATE TABLE run (
  arrival INTEGER PRIMARY KEY,
  node INTEGER NOT NULL,
  kind INTEGER NOT NULL,
  measured_ms INTEGER NOT NULL,
  seq INTEGER NOT NULL,
  feed INTEGER NOT NULL,
  machine INTEGER NOT NULL,
  received_ms INTEGER NOT NULL,
  finished_ms INTEGER,
  run INTEGER NOT NULL,
  state INTEGER NOT NULL,
  flags INTEGER NOT NULL,
  disturbed INTEGER,
  seconds REAL,
  label TEXT NOT NULL,
  v BLOB,
  w BLOB
) STRICT;
CREATE UNIQUE INDEX run_of ON run (node, kind, measured_ms, seq, feed);

-- In which months a node has runs of a kind: all of them lie between these two, which count from
-- January 1970. class: how many classes the rows of `machine` up to the first of this one have.
CREATE TABLE span (
  node INTEGER NOT NULL,
  kind INTEGER NOT NULL,
  class INTEGER NOT NULL,
  first_month INTEGER NOT NULL,
  last_month INTEGER NOT NULL,
  PRIMARY KEY (node, kind, class)
) STRICT, WITHOUT ROWID;

-- Notes of feeds, as they came: the run `seq` of the feed has this label now, and is in a baseline or
-- not. arrival: among those of `run`. noted: the number of the note in the feed of its node.
CREATE TABLE note (
  arrival INTEGER PRIMARY KEY,
  node INTEGER NOT NULL,
  feed INTEGER NOT NULL,
  seq INTEGER NOT NULL,
  run INTEGER NOT NULL,
  noted INTEGER NOT NULL,
  label TEXT NOT NULL,
  baseline INTEGER NOT NULL
) STRICT;
CREATE INDEX note_of ON note (node, feed, seq, noted);

-- Whole runs. state: 0 wanted, 1 here, 2 not to be had (why). due_ms: when a wanted one is requested
-- next, when another was stored or given up. bytes: before it was compressed. cited: 1, a finding has
-- cited it, or it is the first or the last of a set-up. body: as the node exports it, a frame of zstd
CREATE TABLE archive (
  node INTEGER NOT NULL,
  feed INTEGER NOT NULL,
  seq INTEGER NOT NULL,
  run INTEGER NOT NULL,
  state INTEGER NOT NULL,
  tries INTEGER NOT NULL,
  due_ms INTEGER NOT NULL,
  bytes INTEGER NOT NULL,
  why TEXT NOT NULL,
  cited INTEGER NOT NULL DEFAULT 0,
  body BLOB,
  PRIMARY KEY (node, feed, seq)
) STRICT;
CREATE INDEX archive_due ON archive (state, due_ms);

-- One row per change of set-up: rollouts are read from it.
CREATE TABLE setup (
  node INTEGER NOT NULL,
  from_ms INTEGER NOT NULL,
  until_ms INTEGER,
  machine INTEGER NOT NULL,
  PRIMARY KEY (node, from_ms)
) STRICT, WITHOUT ROWID;
-- state: 1 forming, 2 open, 3 acknowledged, 4 fixed, 5 closed. grade: 0 none, 1 suspect, 2 sure.
-- identity: of what and whom, one row each. times: that it was opened. misses: judgements in a row
-- without it. proof: of its first sight, which another measurement must confirm. drained_ms: when
-- the collector drained its node for it the last time. Times: 0: never.
CREATE TABLE finding (
  id INTEGER PRIMARY KEY,
  identity TEXT NOT NULL UNIQUE,
  what TEXT NOT NULL,
  node TEXT NOT NULL,
  class TEXT NOT NULL,
  metric TEXT NOT NULL,
  text TEXT NOT NULL,
  state INTEGER NOT NULL,
  grade INTEGER NOT NULL,
  percent REAL,
  lo REAL,
  hi REAL,
  times INTEGER NOT NULL,
  misses INTEGER NOT NULL,
  found_ms INTEGER NOT NULL,
  seen_ms INTEGER NOT NULL,
  opened_ms INTEGER NOT NULL,
  closed_ms INTEGER NOT NULL,
  marked_ms INTEGER NOT NULL,
  since_ms INTEGER NOT NULL,
  proof INTEGER NOT NULL,
  "by" TEXT NOT NULL,
  note TEXT NOT NULL,
  evidence TEXT NOT NULL,
  drained_ms INTEGER NOT NULL DEFAULT 0
) STRICT;
-- request: as it was submitted. nodes: a node set. state: 0 running, 1 waiting, 2 done,
-- 3 cancelled, 4 stopped. n: nodes; running to skipped: of this round. until_ms: what it waits for
CREATE TABLE campaign (
  id INTEGER PRIMARY KEY,
  name TEXT NOT NULL,
  "by" TEXT NOT NULL,
  request TEXT NOT NULL,
  nodes TEXT NOT NULL,
  state INTEGER NOT NULL,
  round INTEGER NOT NULL,
  created_ms INTEGER NOT NULL,
  round_ms INTEGER NOT NULL,
  until_ms INTEGER NOT NULL,
  n INTEGER NOT NULL,
  running INTEGER NOT NULL,
  done INTEGER NOT NULL,
  failed INTEGER NOT NULL,
  skipped INTEGER NOT NULL,
  spent_s REAL NOT NULL,
  round_s REAL NOT NULL,
  why TEXT NOT NULL
) STRICT;
-- What became of a node in the last round in which it was probed or skipped; a node without a row
-- is pending. state: 0 pending, 1 running, 2 done, 3 failed, 4 skipped
CREATE TABLE campaign_node (
  campaign INTEGER NOT NULL,
  node INTEGER NOT NULL,
  state INTEGER NOT NULL,
  round INTEGER NOT NULL,
  requested_ms INTEGER NOT NULL,
  ended_ms INTEGER NOT NULL,
  run INTEGER NOT NULL,
  seconds REAL,
  why TEXT NOT NULL,
  PRIMARY KEY (campaign, node)
) STRICT, WITHOUT ROWID;

-- For people: sqlite3 fleet.db "SELECT * FROM history WHERE node = 'n1'". A float's bits are
-- decoded in plain SQL: a sign that is never set, 8 bits of exponent, 23 bits of fraction.
CREATE VIEW history AS
SELECT node.name AS node,
  strftime('%Y-%m-%dT%H:%M:%SZ', run.measured_ms / 1000, 'unixepoch') AS measured,
  kind.benchmark AS benchmark, kind.variant AS variant, run.seq AS seq,
  m.value ->> 0 AS metric, m.value ->> 1 AS unit,
  (SELECT round((1 + (b.bits & 0x7fffff) / 8388608.0) * pow(2, (b.bits >> 23) - 127),
                max(0, 5 - CAST(floor(log10(pow(2, (b.bits >> 23) - 127))) AS INTEGER)))
     FROM (SELECT sum(instr('123456789ABCDEF', substr(hex(substr(run.v, 4 * m.key + 1, 4)),
                                                      k.value, 1)) << (4 * (8 - k.value))) AS bits
             FROM json_each('[1,2,3,4,5,6,7,8]') AS k) AS b) AS value
FROM run JOIN node ON node.id = run.node JOIN kind ON kind.id = run.kind
  JOIN layout ON layout.id = kind.layout JOIN json_each(layout.metrics) AS m;
