-- Version 1 of the schema. Times are milliseconds since the epoch; text is stored verbatim.

-- What tells this store from others. One row, never written again.
CREATE TABLE identity (
    store  BLOB NOT NULL
);
INSERT INTO identity (store) VALUES (randomblob(16));

-- Queue positions handed out so far, and the store once more. One row.
CREATE TABLE counters (
    id        INTEGER PRIMARY KEY CHECK (id = 1),
    next_seq  INTEGER NOT NULL,
    store     BLOB NOT NULL
);
INSERT INTO counters (id, next_seq, store) SELECT 1, 1, store FROM identity;

-- Processes that have the store open. Their lock files say which of them still live; last_batch
-- says which of their transactions was the last to be committed.
CREATE TABLE nodes (
    id          INTEGER PRIMARY KEY,
    process     INTEGER NOT NULL,
    opened_at   INTEGER NOT NULL,
    last_batch  INTEGER NOT NULL DEFAULT 0
);

-- Library versions that executions are pinned to.
CREATE TABLE pins (
    id       INTEGER PRIMARY KEY,
    version  TEXT NOT NULL UNIQUE
);

-- Everything that has a name. An instance exists for users from the commit that gives it an
-- orchestration (name, version); before, it is only a name that messages or work refer to.
CREATE TABLE instances (
    key         INTEGER PRIMARY KEY,
    id          TEXT NOT NULL UNIQUE,
    name        TEXT,
    version     TEXT,
    execution   INTEGER,
    pin         INTEGER,
    parent      TEXT,
    created_at  INTEGER,
    updated_at  INTEGER
);
CREATE INDEX instances_parent ON instances (parent, created_at, key) WHERE parent IS NOT NULL;

-- started and outcome are the ids of the events that decide the status.
CREATE TABLE executions (
    instance      INTEGER NOT NULL,
    number        INTEGER NOT NULL,
    status        TEXT NOT NULL,
    pin           INTEGER,
    started_at    INTEGER NOT NULL,
    completed_at  INTEGER,
    started       INTEGER,
    outcome       INTEGER,
    output        TEXT,
    PRIMARY KEY (instance, number)
) WITHOUT ROWID;

CREATE TABLE history (
    instance   INTEGER NOT NULL,
    execution  INTEGER NOT NULL,
    event      INTEGER NOT NULL,
    source     INTEGER,
    at         INTEGER NOT NULL,
    stamp      TEXT NOT NULL,
    body       TEXT NOT NULL,
    PRIMARY KEY (instance, execution, event)
) WITHOUT ROWID;

-- Messages to be read. kind: 0 any, 1 start, 2 queue message. late: came after the latest lock
-- was taken, and is not part of it. attempts: those of locks that ended without a commit.
CREATE TABLE messages (
    instance  INTEGER NOT NULL,
    seq       INTEGER NOT NULL,
    kind      INTEGER NOT NULL,
    attempts  INTEGER NOT NULL,
    late      INTEGER NOT NULL,
    since     INTEGER NOT NULL,
    payload   TEXT NOT NULL,
    PRIMARY KEY (instance, seq)
) WITHOUT ROWID;

-- Messages that are not due yet, in the order in which they will be.
CREATE TABLE hidden (
    visible_at  INTEGER NOT NULL,
    seq         INTEGER NOT NULL,
    instance    INTEGER NOT NULL,
    kind        INTEGER NOT NULL,
    attempts    INTEGER NOT NULL,
    payload     TEXT NOT NULL,
    PRIMARY KEY (visible_at, seq)
) WITHOUT ROWID;
CREATE INDEX hidden_instance ON hidden (instance);

-- One row per instance with messages or a lock. state: 0 resting, 1 ready, 2 locked, 3 aside,
-- 4 undeliverable. head: oldest message, while ready. wake_at: end of the lock, or of the patience
-- with messages for no instance.
CREATE TABLE mailboxes (
    instance  INTEGER PRIMARY KEY,
    state     INTEGER NOT NULL,
    pin       INTEGER NOT NULL,
    head      INTEGER,
    wake_at   INTEGER,
    token     BLOB,
    node      INTEGER
);
CREATE INDEX mailboxes_ready ON mailboxes (pin, head) WHERE head IS NOT NULL;
CREATE INDEX mailboxes_wake ON mailboxes (wake_at) WHERE wake_at IS NOT NULL;
CREATE INDEX mailboxes_undeliverable ON mailboxes (state) WHERE state = 4;

-- Activities. wake_at: when a lock ends or a row becomes visible; none means it can be fetched.
CREATE TABLE work (
    seq        INTEGER PRIMARY KEY,
    instance   INTEGER NOT NULL,
    execution  INTEGER NOT NULL,
    activity   INTEGER NOT NULL,
    attempts   INTEGER NOT NULL,
    wake_at    INTEGER,
    token      BLOB,
    node       INTEGER,
    tag        TEXT,
    session    TEXT,
    payload    TEXT NOT NULL
);
CREATE INDEX work_ready ON work (tag, seq) WHERE wake_at IS NULL AND session IS NULL;
CREATE INDEX work_ready_sessions ON work (seq) WHERE wake_at IS NULL AND session IS NOT NULL;
CREATE INDEX work_wake ON work (wake_at) WHERE wake_at IS NOT NULL;
CREATE INDEX work_session ON work (session) WHERE session IS NOT NULL;
CREATE INDEX work_activity ON work (instance, execution, activity);

CREATE TABLE sessions (
    id             TEXT PRIMARY KEY,
    owner          TEXT NOT NULL,
    until          INTEGER NOT NULL,
    last_activity  INTEGER NOT NULL,
    node           INTEGER
) WITHOUT ROWID;
CREATE INDEX sessions_until ON sessions (until);

-- Values of ended executions, and what the current one changed; a change without value removes.
CREATE TABLE kv (
    instance    INTEGER NOT NULL,
    key         TEXT NOT NULL,
    value       TEXT NOT NULL,
    updated_at  INTEGER NOT NULL,
    PRIMARY KEY (instance, key)
) WITHOUT ROWID;
CREATE TABLE kv_delta (
    instance    INTEGER NOT NULL,
    key         TEXT NOT NULL,
    value       TEXT,
    updated_at  INTEGER NOT NULL,
    PRIMARY KEY (instance, key)
) WITHOUT ROWID;

CREATE TABLE custom_status (
    instance  INTEGER PRIMARY KEY,
    status    TEXT,
    version   INTEGER NOT NULL
);

-- What could not be delivered.
CREATE TABLE dead_letters (
    id        INTEGER PRIMARY KEY,
    instance  TEXT,
    payload   TEXT NOT NULL,
    reason    TEXT NOT NULL,
    at        INTEGER NOT NULL
);
