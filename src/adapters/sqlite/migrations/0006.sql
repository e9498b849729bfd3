-- Frozen. What is to change later is a migration of its own.

-- What freezes the pool; null: nothing does.
ALTER TABLE pools ADD COLUMN frozen TEXT;

-- Notices that are not delivered yet. AUTOINCREMENT: a number is never given twice, though its notice is settled.
CREATE TABLE notices (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    pool INTEGER NOT NULL REFERENCES pools (id) ON DELETE CASCADE,
    webhook TEXT NOT NULL,
    record TEXT NOT NULL
) STRICT;
CREATE INDEX notices_by_webhook ON notices (pool, webhook, seq);
