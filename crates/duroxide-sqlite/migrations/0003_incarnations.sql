-- Version 3: what belongs to a deleted instance never reaches the next one of that name.

-- The instance whose child a start message begins: deleted with it (R6.68).
ALTER TABLE messages ADD COLUMN parent TEXT;
ALTER TABLE hidden ADD COLUMN parent TEXT;
UPDATE messages SET parent = json_extract(payload, '$.StartOrchestration.parent_instance')
WHERE kind = 1 AND json_valid(payload);
UPDATE hidden SET parent = json_extract(payload, '$.StartOrchestration.parent_instance')
WHERE kind = 1 AND json_valid(payload);
CREATE INDEX messages_parent ON messages (parent) WHERE parent IS NOT NULL;
CREATE INDEX hidden_parent ON hidden (parent) WHERE parent IS NOT NULL;

-- Keys of instances are taken from the counter of queue positions, so that none is used twice
-- (R8.143).
UPDATE counters SET next_seq = max(next_seq, 1 + ifnull((SELECT max(key) FROM instances), 0));
