-- SPDX-License-Identifier: Apache-2.0
-- GET /metrics shows the newest value of each series that this node measured. It must find them, newest first, without
-- a look at the points of a series, and however many series were imported.
--
-- How large it gets: an entry of run_measured is a header (5), the node (6), the run (3, and 3 as the row), the source
-- (8) and a cell pointer (2): 2.4 MB in ten years of a run an hour. One of run_of_node has the version (1) instead of
-- run and source: 1.4 MB. series_newest has one entry for each series.

-- The newest run that a node measured itself; run_newest was for the newest of each benchmark. `source` is in it so that
-- the trigger below need not read the run, whose source stands behind its plan, which may have 100 KB.
DROP INDEX run_newest;
CREATE INDEX run_measured ON run (node, id, source) WHERE source = 'measured';
-- How many runs of a node have no metrics yet.
CREATE INDEX run_of_node ON run (node, metrics_version) WHERE state = 'succeeded';

-- The newest run in the series that its node measured itself: the one with the highest number, which a clock that is
-- set back does not change. 0: the series has imports only.
ALTER TABLE series ADD COLUMN newest_run INTEGER NOT NULL DEFAULT 0;
UPDATE series SET newest_run = coalesce((SELECT max(run_id) FROM metric WHERE metric.series = series.id), 0);
UPDATE series SET newest_run = 0
 WHERE NOT EXISTS (SELECT 1 FROM run WHERE run.id = newest_run AND run.source = 'measured');
CREATE INDEX series_newest ON series (node, newest_run DESC) WHERE newest_run > 0;

CREATE TRIGGER metric_newest AFTER INSERT ON metric
    WHEN EXISTS (SELECT 1 FROM series JOIN run INDEXED BY run_measured ON run.node = series.node AND run.id = new.run_id
                  WHERE series.id = new.series AND run.source = 'measured')
BEGIN
    UPDATE series SET newest_run = new.run_id WHERE id = new.series AND newest_run < new.run_id;
END;
-- The one that was measured before it takes its place, or else the first of those measured after it.
CREATE TRIGGER metric_newest_deleted AFTER DELETE ON metric
    WHEN old.run_id = (SELECT newest_run FROM series WHERE id = old.series)
BEGIN
    UPDATE series SET newest_run = coalesce(
        (SELECT run_id FROM metric WHERE series = old.series AND measured_ms <= old.measured_ms
          ORDER BY measured_ms DESC, run_id DESC LIMIT 1),
        (SELECT run_id FROM metric WHERE series = old.series ORDER BY measured_ms, run_id LIMIT 1), 0)
     WHERE id = old.series;
END;

-- How many runs are in each state: GET /metrics tells, and counting them takes 6 ms in ten years.
WITH state (name) AS (VALUES ('queued'), ('running'), ('succeeded'), ('failed'), ('canceled'), ('interrupted'))
INSERT INTO counter SELECT 'runs.' || name, (SELECT count(*) FROM run WHERE run.state = state.name) FROM state;
CREATE TRIGGER run_counted AFTER INSERT ON run BEGIN
    UPDATE counter SET value = value + 1 WHERE name = 'runs.' || new.state;
END;
CREATE TRIGGER run_counted_anew AFTER UPDATE OF state ON run WHEN new.state <> old.state BEGIN
    UPDATE counter SET value = value - 1 WHERE name = 'runs.' || old.state;
    UPDATE counter SET value = value + 1 WHERE name = 'runs.' || new.state;
END;
CREATE TRIGGER run_counted_off AFTER DELETE ON run BEGIN
    UPDATE counter SET value = value - 1 WHERE name = 'runs.' || old.state;
END;
