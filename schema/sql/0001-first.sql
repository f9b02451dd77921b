-- SPDX-License-Identifier: Apache-2.0
-- The first schema. docs/STORAGE.md tells the tables for people.
--
-- How large it gets. A row of `cell` is a record header (18 bytes: 17 columns and its own length), the key
-- (run 3, matrix 0, row 1, column 1), counts (about 2), nine values in thousandths of the unit (2 bytes
-- below 32.8 ns, 3 below 8.4 us, so at most 27), the overlap (2) and a cell pointer (2): about 56 bytes,
-- 62 measured with what pages leave free. Ten years of one run an hour are 87,660 runs; with 8 ranks and
-- 15 sizes that is 10.5 million cells: 0.65 GB. Doubles would take 8 bytes instead of 3: 0.5 GB on top.
-- All else of such a run is 4.6 KB (8 ranks 3.3, spec and plan 0.9, axes 0.3), 0.4 GB in ten years.

CREATE TABLE counter (
    name  TEXT PRIMARY KEY,
    value INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
INSERT INTO counter VALUES ('seq', 0);

-- What the machine was, stored once: many runs share one.
CREATE TABLE fingerprint (
    hash TEXT PRIMARY KEY NOT NULL,
    kind TEXT NOT NULL CHECK (kind IN ('class', 'config')),
    json TEXT NOT NULL
) STRICT;

CREATE TABLE topology (
    hash TEXT PRIMARY KEY NOT NULL,
    xml  TEXT NOT NULL
) STRICT;

CREATE TABLE run (
    id              INTEGER PRIMARY KEY AUTOINCREMENT,
    seq             INTEGER UNIQUE,  -- order of finishing, without gaps as given; NULL until final
    state           TEXT NOT NULL CHECK (state IN
                        ('queued', 'running', 'succeeded', 'failed', 'canceled', 'interrupted')),
    benchmark       TEXT NOT NULL,
    node            TEXT NOT NULL,
    created_ms      INTEGER NOT NULL,  -- UTC, milliseconds since 1970
    started_ms      INTEGER,
    finished_ms     INTEGER,
    method          TEXT,
    n_ranks         INTEGER NOT NULL DEFAULT 0,
    n_cells         INTEGER NOT NULL DEFAULT 0,
    class_hash      TEXT REFERENCES fingerprint (hash),
    config_hash     TEXT REFERENCES fingerprint (hash),
    topology_hash   TEXT REFERENCES topology (hash),
    error           TEXT,  -- slug, NULL when all is well
    error_member    TEXT,
    error_text      TEXT,
    idempotency_key TEXT UNIQUE,
    spec            TEXT NOT NULL,
    plan            TEXT,
    conditions      TEXT,
    phases          TEXT,
    CHECK ((seq IS NULL) = (state IN ('queued', 'running')))
) STRICT;
CREATE INDEX run_queued ON run (id) WHERE state = 'queued';
CREATE INDEX run_running ON run (id) WHERE state = 'running';

CREATE TABLE rank (
    run_id    INTEGER NOT NULL REFERENCES run (id) ON DELETE CASCADE,
    rank      INTEGER NOT NULL,
    cpu       INTEGER NOT NULL,  -- -1: not known
    cpu_node  INTEGER NOT NULL,
    mem_node  INTEGER NOT NULL,
    mem_share REAL,              -- of its pages on the node asked for
    info      TEXT NOT NULL,  -- all that was verified
    PRIMARY KEY (run_id, rank)
) STRICT, WITHOUT ROWID;

CREATE TABLE matrix (
    run_id   INTEGER NOT NULL REFERENCES run (id) ON DELETE CASCADE,
    matrix   INTEGER NOT NULL,  -- 0, 1, ... within the run
    name     TEXT NOT NULL,
    quantity TEXT NOT NULL,
    unit     TEXT NOT NULL,
    row_axis TEXT NOT NULL,  -- {"name","unit","values":[...]}
    col_axis TEXT NOT NULL,
    PRIMARY KEY (run_id, matrix),
    UNIQUE (run_id, name)
) STRICT, WITHOUT ROWID;

-- Columns follow the fields of a cell in model/matrix.c: a count as it is, a value in thousandths of the
-- matrix's unit (_milli: picoseconds for ns), a share in ten-thousandths (_e4). NULL: not known.
CREATE TABLE cell (
    run_id       INTEGER NOT NULL,
    matrix       INTEGER NOT NULL,
    row          INTEGER NOT NULL,
    col          INTEGER NOT NULL,
    n            INTEGER,
    disturbed    INTEGER,
    median_milli INTEGER,
    lo_milli     INTEGER,
    hi_milli     INTEGER,
    min_milli    INTEGER,
    p10_milli    INTEGER,
    p90_milli    INTEGER,
    p99_milli    INTEGER,
    mean_milli   INTEGER,
    sd_milli     INTEGER,
    overlap_e4   INTEGER,
    tight        INTEGER,
    PRIMARY KEY (run_id, matrix, row, col),
    FOREIGN KEY (run_id, matrix) REFERENCES matrix (run_id, matrix) ON DELETE CASCADE
) STRICT, WITHOUT ROWID;

CREATE TABLE log (
    run_id INTEGER PRIMARY KEY REFERENCES run (id) ON DELETE CASCADE,
    text   TEXT NOT NULL
) STRICT;

-- For people: every number of every latency run, one line a cell.
CREATE VIEW measurement AS
SELECT run.id AS run,
       run.node AS node,
       datetime(run.created_ms / 1000, 'unixepoch') AS created,
       m.name AS matrix,
       json_extract(m.row_axis, '$.values[' || c.row || ']') AS rank,
       rank.cpu AS cpu,
       rank.mem_node AS mem_node,
       json_extract(m.col_axis, '$.values[' || c.col || ']') AS working_set_bytes,
       c.n AS n,
       c.disturbed AS disturbed,
       c.median_milli / 1000.0 AS median_ns,
       c.lo_milli / 1000.0 AS lo_ns,
       c.hi_milli / 1000.0 AS hi_ns,
       c.min_milli / 1000.0 AS min_ns,
       c.p10_milli / 1000.0 AS p10_ns,
       c.p90_milli / 1000.0 AS p90_ns,
       c.p99_milli / 1000.0 AS p99_ns,
       c.mean_milli / 1000.0 AS mean_ns,
       c.sd_milli / 1000.0 AS sd_ns,
       c.overlap_e4 / 10000.0 AS overlap,
       c.tight AS tight
  FROM run
  JOIN matrix AS m ON m.run_id = run.id AND m.quantity = 'latency'
  JOIN cell AS c ON c.run_id = m.run_id AND c.matrix = m.matrix
  LEFT JOIN rank ON rank.run_id = run.id
       AND rank.rank = json_extract(m.row_axis, '$.values[' || c.row || ']');
