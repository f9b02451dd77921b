-- SPDX-License-Identifier: Apache-2.0
-- A label that is set or removed after a run has finished, and a baseline that takes it in or lets it go, get a number of
-- their own in the feed: so whoever follows it misses none. Only the newest of a run is kept: it says what holds now.
--
-- How large it gets: a row is a header (3), two numbers (3 each), and the same in the index: 20 bytes for each run whose
-- label or baseline was changed.
CREATE TABLE note (
    run_id INTEGER PRIMARY KEY REFERENCES run (id) ON DELETE CASCADE,
    seq    INTEGER NOT NULL UNIQUE
) STRICT;

-- What was set before is told once.
INSERT INTO note
SELECT id, (SELECT value FROM counter WHERE name = 'seq') + row_number() OVER (ORDER BY id) FROM run
 WHERE seq IS NOT NULL AND (label <> '' OR id IN (SELECT run_id FROM baseline_run));
UPDATE counter SET value = value + (SELECT count(*) FROM note) WHERE name = 'seq';

CREATE TRIGGER run_labelled AFTER UPDATE OF label ON run WHEN new.label <> old.label AND new.seq IS NOT NULL BEGIN
    UPDATE counter SET value = value + 1 WHERE name = 'seq';
    INSERT OR REPLACE INTO note SELECT new.id, value FROM counter WHERE name = 'seq';
END;
CREATE TRIGGER baseline_added AFTER INSERT ON baseline_run
    WHEN EXISTS (SELECT 1 FROM run WHERE id = new.run_id AND seq IS NOT NULL)
BEGIN
    UPDATE counter SET value = value + 1 WHERE name = 'seq';
    INSERT OR REPLACE INTO note SELECT new.run_id, value FROM counter WHERE name = 'seq';
END;
CREATE TRIGGER baseline_removed AFTER DELETE ON baseline_run
    WHEN EXISTS (SELECT 1 FROM run WHERE id = old.run_id AND seq IS NOT NULL)
BEGIN
    UPDATE counter SET value = value + 1 WHERE name = 'seq';
    INSERT OR REPLACE INTO note SELECT old.run_id, value FROM counter WHERE name = 'seq';
END;
