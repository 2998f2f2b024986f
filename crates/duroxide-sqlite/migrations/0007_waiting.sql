-- Version 7: what a turn left behind does not overtake it (R8.149).

-- Whether the latest lock left messages behind that could be read. If its turn is given back for a
-- while, the mailbox waits as a whole: state 5, until wake_at.
ALTER TABLE mailboxes ADD COLUMN leaves_some INTEGER NOT NULL DEFAULT 0;
