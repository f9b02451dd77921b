-- SPDX-License-Identifier: Apache-2.0
-- Facts and topologies go with the last run that has them. They stayed, so that keep_bytes, which counts their pages, could
-- delete runs and never be content.
--
-- How large it gets: an entry of these indexes is a hash (64), a number (3) and a header (4): 71 bytes, three a run: 19 MB in
-- ten years of a run an hour. Foreign keys use them too: without them each row that goes is looked for in all runs.
CREATE INDEX run_class ON run (class_hash) WHERE class_hash IS NOT NULL;
CREATE INDEX run_config ON run (config_hash) WHERE config_hash IS NOT NULL;
CREATE INDEX run_topology ON run (topology_hash) WHERE topology_hash IS NOT NULL;

CREATE TRIGGER run_unused AFTER DELETE ON run BEGIN
    DELETE FROM topology WHERE hash = old.topology_hash
       AND NOT EXISTS (SELECT 1 FROM run WHERE topology_hash = old.topology_hash);
    DELETE FROM fingerprint WHERE hash IN (old.class_hash, old.config_hash)
       AND NOT EXISTS (SELECT 1 FROM run WHERE class_hash = fingerprint.hash)
       AND NOT EXISTS (SELECT 1 FROM run WHERE config_hash = fingerprint.hash);
END;

DELETE FROM topology WHERE NOT EXISTS (SELECT 1 FROM run WHERE topology_hash = topology.hash);
DELETE FROM fingerprint
 WHERE NOT EXISTS (SELECT 1 FROM run WHERE class_hash = fingerprint.hash)
   AND NOT EXISTS (SELECT 1 FROM run WHERE config_hash = fingerprint.hash);
