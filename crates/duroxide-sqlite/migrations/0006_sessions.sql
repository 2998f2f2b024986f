-- Version 6: the activities of an owner's sessions are found without a look at those of others.

-- The owner whose lease on the activity's session has not been found to have run out; none if any owner
-- may have it.
ALTER TABLE work ADD COLUMN holder TEXT;
-- Whether the lease was found to have run out.
ALTER TABLE sessions ADD COLUMN lapsed INTEGER NOT NULL DEFAULT 0;
UPDATE work SET holder = (SELECT owner FROM sessions s WHERE s.id = work.session);
DROP INDEX work_ready_sessions;
CREATE INDEX work_ready_sessions ON work (holder, tag, position)
WHERE wake_at IS NULL AND session IS NOT NULL;
CREATE INDEX sessions_lapse ON sessions (until) WHERE lapsed = 0;
