-- Version 8: the first message of a new instance needs no entry in an index, if it is a start.

-- kind 1 is a start that came with its instance: it is the oldest of the instance's messages, and the
-- instance's row has the same parent. All other starts are of kind 3 and have their place in the
-- indexes. Among hidden messages every start is of kind 1.
UPDATE messages SET kind = 3 WHERE kind = 1;
DROP INDEX messages_start;
CREATE INDEX messages_start ON messages (instance, seq) WHERE kind = 3;
DROP INDEX messages_parent;
CREATE INDEX messages_parent ON messages (parent) WHERE kind = 3 AND parent IS NOT NULL;

-- The parent is noted with the name, before the instance exists for users.
DROP INDEX instances_parent;
CREATE INDEX instances_parent ON instances (parent) WHERE parent IS NOT NULL;
