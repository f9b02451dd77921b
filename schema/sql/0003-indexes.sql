-- SPDX-License-Identifier: Apache-2.0
-- Statements read no more rows than they give, however many runs and series there are; series without points go.
-- docs/STORAGE.md tells what each index is for.
--
-- How large it gets: an entry of the four lists is a header (5), texts of 15 to 25, the run (3) and a cell
-- pointer (2); of `metric_run` it is a header (4), run 3, series 1, milliseconds 6 and a cell pointer (2). Ten
-- years of a run an hour, 10 metrics each: 10 MB and 15 MB.

-- Each combination of filters of the list of runs has its own, newest first; those of one filter are there already.
CREATE INDEX run_benchmark_state ON run (benchmark, state, id);
CREATE INDEX run_node_state ON run (node, state, id);
CREATE INDEX run_node_benchmark ON run (node, benchmark, id);
CREATE INDEX run_node_benchmark_state ON run (node, benchmark, state, id);
-- Runs of this node can be imported too, any number of them.
CREATE INDEX run_newest ON run (node, benchmark, id) WHERE state = 'succeeded' AND source = 'measured';
CREATE INDEX run_started ON run (started_ms) WHERE source = 'measured' AND started_ms IS NOT NULL;

-- Imports bring as many series of a node as they like, so the way from a run to its metrics must not be by its node.
CREATE INDEX metric_run ON metric (run_id);
DROP TRIGGER run_deleted;
CREATE TRIGGER run_deleted AFTER DELETE ON run BEGIN
    DELETE FROM metric WHERE run_id = old.id;
END;

DELETE FROM series WHERE NOT EXISTS (SELECT 1 FROM metric WHERE metric.series = series.id);
CREATE TRIGGER metric_deleted AFTER DELETE ON metric
    WHEN NOT EXISTS (SELECT 1 FROM metric WHERE series = old.series)
BEGIN
    DELETE FROM series WHERE id = old.series;
END;
-- In the order of the list of series, as the key of `series` is for a metric.
CREATE INDEX series_node ON series (node, metric, variant);
CREATE INDEX series_variant ON series (variant, metric, node);
CREATE INDEX series_node_variant ON series (node, variant, metric);
