-- The tables. Times are milliseconds since the epoch by the server's clock, text is what the client
-- makes of any text (PostgreSQL has no NUL), ids of 64 bits are stored as the same bits.
--
-- Rows of queues (message, hidden, work, session) come and go, those of mailbox change with every turn:
-- vacuum looks after them when some thousand are dead, whatever the size of the table, and does not
-- pause between pages of what is small. Fillfactors leave room for the next version of a row beside it.
--
-- `duroxide` stands for the schema of the store; it is replaced when a migration runs.

-- Queue positions. Later ones are larger; gaps mean nothing.
CREATE SEQUENCE duroxide.positions;

-- Library versions that executions are pinned to. 0 is used for none.
CREATE TABLE duroxide.pin (
    id       integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    version  text COLLATE "C" NOT NULL UNIQUE
);

-- Everything that has an id. An instance exists for users from the commit that gives it an
-- orchestration (name, version); before, it is only somebody whom messages or work speak of.
-- Ids are of any length: hence hash indexes, also for the one that makes them unique.
CREATE TABLE duroxide.instance (
    key             bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    id              text COLLATE "C" NOT NULL,
    name            text,
    version         text,
    execution       bigint,
    pin             integer NOT NULL DEFAULT 0,
    parent          text COLLATE "C",
    created_at      bigint,
    updated_at      bigint,
    custom_status   text,
    custom_version  bigint NOT NULL DEFAULT 0,
    CONSTRAINT instance_id EXCLUDE USING hash (id WITH =)
) WITH (fillfactor = 80);
CREATE INDEX instance_parent ON duroxide.instance USING hash (parent) WHERE parent IS NOT NULL;
CREATE INDEX instance_created ON duroxide.instance (created_at, key) WHERE name IS NOT NULL;

-- started and outcome are the ids of the events that decide the status.
CREATE TABLE duroxide.execution (
    instance      bigint NOT NULL,
    number        bigint NOT NULL,
    status        text NOT NULL,
    pin           integer NOT NULL DEFAULT 0,
    started_at    bigint NOT NULL,
    completed_at  bigint,
    started       bigint,
    outcome       bigint,
    output        text,
    PRIMARY KEY (instance, number)
) WITH (fillfactor = 80);

-- Events. What is in the key is not in the body.
CREATE TABLE duroxide.history (
    instance   bigint NOT NULL,
    execution  bigint NOT NULL,
    event      bigint NOT NULL,
    source     bigint,
    at         bigint NOT NULL,
    stamp      text NOT NULL,
    body       text NOT NULL,
    PRIMARY KEY (instance, execution, event)
);

-- One row per instance: what can be done with its messages, and who is doing it. Whoever changes
-- anything of an instance holds the lock on this row.
--   known    a turn can run without a start message
--   state    0 resting, 1 ready, 2 locked, 3 aside, 4 undeliverable, 5 cannot be read, 6 waiting: a
--            turn that had left messages behind was given back for a while (R8.149)
--   head     place among those that are ready, while it is: that of the oldest message, or `behind`
--   behind   place behind all that were ready when a lock ended without its holder, until the next
--            commit; who has one comes alone (R8.146)
--   wake_at  end of the lock, or of the patience with messages for nobody, or when it is tried again,
--            or when it has waited
--   token    the latest lock's secret, also after the lock ran out
--   taken    messages of the latest lock, and 0 if others could be read that are not part of it
--            (R8.147); counted: their attempts are written down
--   done     secret of the lock whose turn was committed last, for those who lost the answer
CREATE TABLE duroxide.mailbox (
    instance  bigint PRIMARY KEY,
    known     boolean NOT NULL DEFAULT false,
    counted   boolean NOT NULL DEFAULT false,
    state     smallint NOT NULL DEFAULT 0,
    pin       integer NOT NULL DEFAULT 0,
    head      bigint,
    behind    bigint,
    wake_at   bigint,
    token     uuid,
    node      bigint,
    taken     bigint[],
    done      uuid
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000,
    autovacuum_analyze_scale_factor = 0.1, autovacuum_analyze_threshold = 5000);
CREATE INDEX mailbox_ready ON duroxide.mailbox (pin, head) WHERE head IS NOT NULL;
CREATE INDEX mailbox_wake ON duroxide.mailbox (wake_at) WHERE wake_at IS NOT NULL;

-- Messages to be read. kind: 0 any, 1 start, 2 queue message. since: when it could be read first.
-- lost: nodes whose locks on it ended without them, which counts unless they come back.
-- parent: the instance whose child it begins; deleted with it (R6.68).
CREATE TABLE duroxide.message (
    instance  bigint NOT NULL,
    seq       bigint NOT NULL,
    kind      smallint NOT NULL,
    attempts  bigint NOT NULL,
    since     bigint NOT NULL,
    lost      bigint[],
    payload   text NOT NULL,
    parent    text COLLATE "C",
    PRIMARY KEY (instance, seq)
) WITH (autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 1000,
    autovacuum_vacuum_cost_delay = 0, autovacuum_analyze_threshold = 5000);
CREATE INDEX message_parent ON duroxide.message USING hash (parent) WHERE parent IS NOT NULL;

-- Starts are looked for among any number of others.
CREATE INDEX message_start ON duroxide.message (instance, seq) WHERE kind = 1;
CREATE INDEX message_next_execution ON duroxide.message (instance, seq)
    WHERE kind = 1 AND starts_with(payload, '{"ContinueAsNew"');
CREATE INDEX message_lost ON duroxide.message (instance) WHERE lost IS NOT NULL;

-- Messages that are not due yet, in the order in which they will be. dropped: a timer that nothing waits
-- for any more (R8.151), for the views; no index knows of it.
CREATE TABLE duroxide.hidden (
    visible_at  bigint NOT NULL,
    seq         bigint NOT NULL,
    instance    bigint NOT NULL,
    kind        smallint NOT NULL,
    attempts    bigint NOT NULL,
    payload     text NOT NULL,
    parent      text COLLATE "C",
    dropped     boolean,
    PRIMARY KEY (visible_at, seq)
) WITH (autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 1000,
    autovacuum_vacuum_cost_delay = 0, autovacuum_analyze_threshold = 5000);
CREATE INDEX hidden_parent ON duroxide.hidden USING hash (parent) WHERE parent IS NOT NULL;
CREATE INDEX hidden_start ON duroxide.hidden (instance) WHERE kind = 1;
CREATE INDEX hidden_instance ON duroxide.hidden (instance, visible_at);

-- Activities. wake_at: when a lock ends or a row becomes visible; none means it can be fetched.
-- Tags are of any length: the index knows a number made of them. lost: as for messages. position: place
-- among the others: `seq`, or one behind all of them when a lock has ended without its holder; then it
-- comes alone, too (R8.146). Whoever inserts says it: a generated column has its expression read from
-- the catalogue by every statement.
-- parked: it can be fetched, by the owner of its session only, and others have met it often enough.
CREATE TABLE duroxide.work (
    seq        bigint PRIMARY KEY,
    instance   bigint NOT NULL,
    execution  bigint NOT NULL,
    activity   bigint NOT NULL,
    attempts   bigint NOT NULL,
    wake_at    bigint,
    token      uuid,
    node       bigint,
    tag_key    bigint NOT NULL,
    tag        text COLLATE "C",
    session    text COLLATE "C",
    lost       bigint[],
    parked     boolean NOT NULL DEFAULT false,
    position   bigint NOT NULL,
    payload    text NOT NULL
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 1000,
    autovacuum_vacuum_cost_delay = 0, autovacuum_analyze_threshold = 5000);
CREATE INDEX work_ready ON duroxide.work (tag_key, position)
    WHERE wake_at IS NULL AND session IS NULL;
-- For those who take any tag.
CREATE INDEX work_ready_tagged ON duroxide.work (position)
    WHERE wake_at IS NULL AND session IS NULL AND tag_key <> 0;
CREATE INDEX work_ready_sessions ON duroxide.work (tag_key, position)
    WHERE wake_at IS NULL AND session IS NOT NULL AND NOT parked;
CREATE INDEX work_ready_of_session ON duroxide.work (hashtextextended(session, 0), position)
    WHERE wake_at IS NULL AND session IS NOT NULL;
CREATE INDEX work_parked ON duroxide.work (hashtextextended(session, 0), position) WHERE parked;
CREATE INDEX work_wake ON duroxide.work (wake_at) WHERE wake_at IS NOT NULL;
CREATE INDEX work_session ON duroxide.work USING hash (session) WHERE session IS NOT NULL;
CREATE INDEX work_lost ON duroxide.work (seq) WHERE lost IS NOT NULL;
CREATE INDEX work_activity ON duroxide.work (instance, execution, activity);

-- Which worker a session's activities belong to, and for how long. parked: some of them may be.
CREATE TABLE duroxide.session (
    id             text COLLATE "C" NOT NULL,
    owner          text COLLATE "C" NOT NULL,
    until          bigint NOT NULL,
    last_activity  bigint NOT NULL,
    node           bigint,
    parked         boolean NOT NULL DEFAULT false,
    CONSTRAINT session_id EXCLUDE USING hash (id WITH =)
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 1000,
    autovacuum_vacuum_cost_delay = 0, autovacuum_analyze_threshold = 5000);
CREATE INDEX session_owner ON duroxide.session USING hash (owner);
CREATE INDEX session_until ON duroxide.session (until);
-- Who asks by owner does not say anything about `until`, and so cannot be led to the first of these.
CREATE INDEX session_parked ON duroxide.session (until) WHERE parked AND until > 0;
CREATE INDEX session_parked_owner ON duroxide.session
    (hashtextextended(owner, 0), hashtextextended(id, 0)) WHERE parked;

-- Values of ended executions, and what the current one changed; a change without value removes.
-- Keys are of any length and few: an instance's rows are looked through.
CREATE TABLE duroxide.kv (
    instance    bigint NOT NULL,
    key         text COLLATE "C" NOT NULL,
    value       text NOT NULL,
    updated_at  bigint NOT NULL
);
CREATE INDEX kv_instance ON duroxide.kv (instance);
CREATE TABLE duroxide.kv_delta (
    instance    bigint NOT NULL,
    key         text COLLATE "C" NOT NULL,
    value       text,
    updated_at  bigint NOT NULL
);
CREATE INDEX kv_delta_instance ON duroxide.kv_delta (instance);

-- What could not be delivered.
CREATE TABLE duroxide.dead_letter (
    id        bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    instance  text,
    payload   text NOT NULL,
    reason    text NOT NULL,
    at        bigint NOT NULL
);
