-- Version 2: long texts are stored once per instance.

-- key: hash of the text, or the next number that was free. It tells where to look; whether it is the
-- same text is told by the text alone.
CREATE TABLE long_texts (
    instance  INTEGER NOT NULL,
    key       INTEGER NOT NULL,
    text      TEXT NOT NULL,
    PRIMARY KEY (instance, key)
) WITHOUT ROWID;

-- Key of the text that belongs into the payload of a row (input, result, data), where another stands
-- for it; of an execution, its output.
ALTER TABLE history ADD COLUMN long_text INTEGER;
ALTER TABLE messages ADD COLUMN long_text INTEGER;
ALTER TABLE hidden ADD COLUMN long_text INTEGER;
ALTER TABLE work ADD COLUMN long_text INTEGER;
ALTER TABLE executions ADD COLUMN long_text INTEGER;
