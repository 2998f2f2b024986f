-- Version 6: whose a session's activities are is found without looking at those of others.

-- The owner whose lease on the activity's session has not been found to have run out; none if anybody
-- may have it.
ALTER TABLE work ADD COLUMN holder TEXT;
-- Whether the lease was found to have run out.
ALTER TABLE sessions ADD COLUMN lapsed INTEGER NOT NULL DEFAULT 0;
UPDATE work SET holder = (SELECT owner FROM sessions s WHERE s.id = work.session);
DROP INDEX work_ready_sessions;
CREATE INDEX work_ready_sessions ON work (holder, tag, position)
WHERE wake_at IS NULL AND session IS NOT NULL;
CREATE INDEX sessions_lapse ON sessions (until) WHERE lapsed = 0;
