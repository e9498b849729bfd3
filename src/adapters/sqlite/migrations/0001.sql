-- Frozen. What is to change later is a migration of its own.

-- Who may write and call. One row.
CREATE TABLE lease (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    epoch INTEGER NOT NULL,
    holder TEXT NOT NULL,
    not_after INTEGER NOT NULL
) STRICT;

-- lines: how many lines of history are kept of it.
CREATE TABLE pools (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    name TEXT NOT NULL UNIQUE,
    lines INTEGER NOT NULL DEFAULT 0
) STRICT;

CREATE TABLE states (
    pool INTEGER PRIMARY KEY REFERENCES pools (id) ON DELETE CASCADE,
    record TEXT NOT NULL
) STRICT;

CREATE TABLE machines (
    pool INTEGER NOT NULL REFERENCES pools (id) ON DELETE CASCADE,
    key TEXT NOT NULL,
    record TEXT NOT NULL,
    PRIMARY KEY (pool, key)
) STRICT, WITHOUT ROWID;

-- n: the order of writing. dropped: the order of dropping, null while it is shown to plans. ended: when, null before.
CREATE TABLE entries (
    pool INTEGER NOT NULL REFERENCES pools (id) ON DELETE CASCADE,
    n INTEGER NOT NULL,
    id TEXT NOT NULL,
    dropped INTEGER,
    ended INTEGER,
    record TEXT NOT NULL,
    PRIMARY KEY (pool, n)
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX entries_by_id ON entries (pool, id);
CREATE INDEX entries_dropped ON entries (pool, dropped) WHERE dropped IS NOT NULL;

-- record: null once it is answered, when only its id is remembered, in the order of answering.
CREATE TABLE asks (
    n INTEGER PRIMARY KEY AUTOINCREMENT,
    pool INTEGER NOT NULL REFERENCES pools (id) ON DELETE CASCADE,
    id TEXT NOT NULL,
    record TEXT
) STRICT;
CREATE UNIQUE INDEX asks_by_id ON asks (pool, id);
CREATE INDEX asks_in_order ON asks (pool, n);

CREATE TABLE marks (
    pool INTEGER NOT NULL REFERENCES pools (id) ON DELETE CASCADE,
    key TEXT NOT NULL,
    record TEXT NOT NULL,
    PRIMARY KEY (pool, key)
) STRICT, WITHOUT ROWID;

-- AUTOINCREMENT: a number is never given twice, though its line was let go.
CREATE TABLE history (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    pool INTEGER NOT NULL REFERENCES pools (id) ON DELETE CASCADE,
    record TEXT NOT NULL
) STRICT;
CREATE INDEX history_by_pool ON history (pool, seq);

CREATE TABLE audits (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    record TEXT NOT NULL
) STRICT;

CREATE TABLE claims (
    key TEXT PRIMARY KEY,
    request TEXT NOT NULL,
    at INTEGER NOT NULL,
    answer TEXT
) STRICT, WITHOUT ROWID;
CREATE INDEX claims_by_age ON claims (at);

CREATE TABLE documents (
    revision INTEGER PRIMARY KEY AUTOINCREMENT,
    pool TEXT NOT NULL UNIQUE,
    text TEXT NOT NULL,
    who TEXT NOT NULL,
    at INTEGER NOT NULL
) STRICT;
