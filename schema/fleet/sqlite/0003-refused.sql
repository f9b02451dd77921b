-- SPDX-License-Identifier: Apache-2.0
-- refused: how often the node of a wanted run refused it, of all `tries`. It was in `bytes`, which
-- a run has only when it is here.
ALTER TABLE archive ADD COLUMN refused INTEGER NOT NULL DEFAULT 0;
UPDATE archive SET refused = bytes, bytes = 0 WHERE state = 0 AND bytes <> 0;
