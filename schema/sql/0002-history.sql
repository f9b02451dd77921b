-- SPDX-License-Identifier: Apache-2.0
-- History: summary metrics as series, baselines, labels, imports; ranks in columns instead of JSON.
--
-- How large it gets, with the arithmetic of the first schema: a row of `rank` falls from 410 bytes of JSON to
-- about 90 in columns (8 ranks, 87,660 runs: 0.29 GB become 0.06). A row of `metric` is a header (7), the
-- key (series 1, milliseconds 6, run 3), three values in thousandths (3 each) and a cell pointer (2): 28
-- bytes; a run has about 10: 25 MB in ten years.

-- How a run came here, what people call it, and when it was measured: its start here, or the date an import
-- gives. metrics_version: of the summary metrics stored for it; 0: none yet.
ALTER TABLE run ADD COLUMN source TEXT NOT NULL DEFAULT 'measured' CHECK (source IN ('measured', 'imported'));
ALTER TABLE run ADD COLUMN label TEXT NOT NULL DEFAULT '';
ALTER TABLE run ADD COLUMN measured_ms INTEGER;
ALTER TABLE run ADD COLUMN metrics_version INTEGER NOT NULL DEFAULT 0;
UPDATE run SET measured_ms = coalesce(started_ms, created_ms) WHERE seq IS NOT NULL;
-- Each filter of the list of runs is a scan of one of these, newest first.
CREATE INDEX run_state ON run (state, id);
CREATE INDEX run_benchmark ON run (benchmark, id);
CREATE INDEX run_node ON run (node, id);
CREATE INDEX run_created ON run (created_ms, id);
-- How often a run was older than one before it, because the clock was set back. While it is 0 a stretch of
-- time is a stretch of ids, and the list of runs finds it at once.
INSERT INTO counter
SELECT 'clock_steps', count(*) FROM (SELECT created_ms < lag(created_ms) OVER (ORDER BY id) AS back FROM run)
 WHERE back;
CREATE TRIGGER run_inserted AFTER INSERT ON run WHEN new.created_ms < (SELECT max(created_ms) FROM run) BEGIN
    UPDATE counter SET value = value + 1 WHERE name = 'clock_steps';
END;
CREATE INDEX run_label ON run (label, id) WHERE label <> '';
CREATE INDEX run_without_metrics ON run (metrics_version, id) WHERE state = 'succeeded';

-- Which history this is: one that began anew, its numbers from 1 again, has another name.
CREATE TABLE identity (name TEXT PRIMARY KEY NOT NULL) STRICT, WITHOUT ROWID;
INSERT INTO identity VALUES (lower(hex(randomblob(16))));

DROP VIEW measurement;
CREATE TABLE rank_2 (
    run_id        INTEGER NOT NULL REFERENCES run (id) ON DELETE CASCADE,
    rank          INTEGER NOT NULL,
    pid           INTEGER NOT NULL,
    cpu_wanted    INTEGER NOT NULL,  -- OS numbers; -1: not known, or not asked for
    cpu           INTEGER NOT NULL,
    cpu_node      INTEGER NOT NULL,
    mem_wanted    INTEGER NOT NULL,
    mem_node      INTEGER NOT NULL,  -- with most of its pages
    mem_share     REAL,              -- of its pages on the node asked for
    pages_checked INTEGER NOT NULL,
    pages_total   INTEGER NOT NULL,
    mem_method    TEXT NOT NULL,
    pages_wanted  TEXT NOT NULL,
    pages_got     TEXT NOT NULL,
    huge_share    REAL,
    seed          INTEGER NOT NULL,
    migrations    INTEGER NOT NULL,
    arena_bytes   INTEGER NOT NULL,
    address       INTEGER NOT NULL,  -- of the arena
    nodes         TEXT NOT NULL,     -- [[node, pages of the arena, KiB of the process], ...]
    PRIMARY KEY (run_id, rank)
) STRICT, WITHOUT ROWID;
INSERT INTO rank_2
SELECT run_id, rank,
       coalesce(info ->> '$.pid', 0), coalesce(info ->> '$.cpu_wanted', -1), cpu, cpu_node,
       coalesce(info ->> '$.mem_wanted', -1), mem_node, mem_share,
       coalesce(info ->> '$.pages_checked', 0), coalesce(info ->> '$.pages_total', 0),
       coalesce(info ->> '$.mem_method', 'none'), coalesce(info ->> '$.pages_wanted', ''),
       coalesce(info ->> '$.pages_got', ''), info ->> '$.huge_share', coalesce(info ->> '$.seed', 0),
       coalesce(info ->> '$.migrations', 0), coalesce(info ->> '$.arena_bytes', 0),
       (WITH RECURSIVE hex (at, value) AS (  -- "0x7f0000001000"
            SELECT 3, 0
             UNION ALL
            SELECT at + 1, value * 16 + instr('123456789abcdef', substr(info ->> '$.address', at, 1))
              FROM hex WHERE at <= length(info ->> '$.address'))
        SELECT value FROM hex ORDER BY at DESC LIMIT 1),
       coalesce((SELECT json_group_array(json_array(n.value ->> '$.node', n.value ->> '$.pages',
                                                    coalesce(n.value ->> '$.process_kib', 0)))
                   FROM json_each(info, '$.nodes') AS n), '[]')
  FROM rank;
DROP TABLE rank;
ALTER TABLE rank_2 RENAME TO rank;

-- A metric's history: values that may be compared in a line stand in one series. `variant` names what was
-- asked for that differs from the defaults (pages, sizes, number of ranks): another variant, another series.
CREATE TABLE series (
    id      INTEGER PRIMARY KEY,
    metric  TEXT NOT NULL,  -- "latency.local.dram.median_ns"; docs/METRICS.md lists them
    node    TEXT NOT NULL,  -- host name
    variant TEXT NOT NULL,
    unit    TEXT NOT NULL,
    UNIQUE (metric, node, variant)
) STRICT;

-- Thousandths of the series' unit. Keyed so that a stretch of time is one range of one series.
CREATE TABLE metric (
    series      INTEGER NOT NULL REFERENCES series (id),
    measured_ms INTEGER NOT NULL,
    run_id      INTEGER NOT NULL,
    value_milli INTEGER NOT NULL,
    lo_milli    INTEGER,  -- NULL: not known
    hi_milli    INTEGER,
    PRIMARY KEY (series, measured_ms, run_id)
) STRICT, WITHOUT ROWID;
-- A foreign key to run would have every deletion look through the whole table; this finds the rows by key.
CREATE TRIGGER run_deleted AFTER DELETE ON run BEGIN
    DELETE FROM metric WHERE run_id = old.id AND measured_ms = old.measured_ms
                         AND series IN (SELECT id FROM series WHERE node = old.node);
END;

-- What runs are checked against: one run or the middle of several.
CREATE TABLE baseline (
    name       TEXT PRIMARY KEY NOT NULL,
    created_ms INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE baseline_run (
    name   TEXT NOT NULL REFERENCES baseline (name) ON DELETE CASCADE,
    run_id INTEGER NOT NULL REFERENCES run (id),
    PRIMARY KEY (name, run_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX baseline_of_run ON baseline_run (run_id);

-- For people: every number of every latency run, one line a cell.
CREATE VIEW measurement AS
SELECT run.id AS run,
       run.node AS node,
       datetime(coalesce(run.measured_ms, run.created_ms) / 1000, 'unixepoch') AS created,
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
  JOIN matrix AS m ON m.run_id = run.id AND m.quantity = 'latency' AND m.unit = 'ns'
  JOIN cell AS c ON c.run_id = m.run_id AND c.matrix = m.matrix
  LEFT JOIN rank ON rank.run_id = run.id
       AND rank.rank = json_extract(m.row_axis, '$.values[' || c.row || ']');

-- For people: every metric of every run.
CREATE VIEW history AS
SELECT s.metric, s.node, s.variant, s.unit,
       datetime(m.measured_ms / 1000, 'unixepoch') AS measured,
       m.run_id AS run,
       m.value_milli / 1000.0 AS value,
       m.lo_milli / 1000.0 AS lo,
       m.hi_milli / 1000.0 AS hi
  FROM series AS s JOIN metric AS m ON m.series = s.id;
