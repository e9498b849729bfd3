-- Frozen. What is to change later is a migration of its own.

-- The SHA-256 of the hash before, a line end, and the record. null: written before there was a chain.
ALTER TABLE audits ADD COLUMN hash BLOB;

-- gone: the last line that is not checked, since it was removed or written before there was a chain; before: its hash.
-- last: the last line that was written, and its hash.
CREATE TABLE audit_chain (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    gone INTEGER NOT NULL,
    before BLOB NOT NULL,
    last INTEGER NOT NULL,
    hash BLOB NOT NULL
) STRICT;
INSERT INTO audit_chain (one, gone, before, last, hash)
SELECT 1, coalesce(max(seq), 0), x'', coalesce(max(seq), 0), x'' FROM audits;
