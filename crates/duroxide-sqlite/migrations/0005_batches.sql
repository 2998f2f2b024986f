-- Version 5: a turn has a bounded number of messages (R8.147).

-- The messages of the latest lock: those up to `upto` that are not late, and `extra`, if the one that
-- begins the execution comes later. Locks of before have all that are not late.
ALTER TABLE mailboxes ADD COLUMN upto INTEGER;
ALTER TABLE mailboxes ADD COLUMN extra INTEGER;

-- The start of an instance is found however many messages are before it.
CREATE INDEX messages_start ON messages (instance, seq) WHERE kind = 1;
