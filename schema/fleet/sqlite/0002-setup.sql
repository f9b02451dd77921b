-- SPDX-License-Identifier: Apache-2.0
-- good: whether a run with the set-up has succeeded; 0 not known, 1 none, 2 one has. Whoever
-- writes needs it for the first run of each node, and would read 10,000 nodes one by one.
ALTER TABLE setup ADD COLUMN good INTEGER NOT NULL DEFAULT 0;
