-- Version 4: what was tried goes behind what was not (R8.146).

-- Where a mailbox stands that was moved behind others: not before this position, whatever its
-- oldest message says.
ALTER TABLE mailboxes ADD COLUMN moved_to INTEGER;

-- Place in the queue: seq, until a lock ends without an answer. Tokens name seq, which stays.
ALTER TABLE work ADD COLUMN position INTEGER NOT NULL DEFAULT 0;
UPDATE work SET position = seq;
DROP INDEX work_ready;
DROP INDEX work_ready_sessions;
CREATE INDEX work_ready ON work (tag, position) WHERE wake_at IS NULL AND session IS NULL;
CREATE INDEX work_ready_sessions ON work (position) WHERE wake_at IS NULL AND session IS NOT NULL;
