-- Frozen. What is to change later is a migration of its own.

-- The stop of all pools. One row. record: null while no person stops them. changes: how often it was given or lifted.
CREATE TABLE stop (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    changes INTEGER NOT NULL,
    record TEXT
) STRICT;
INSERT INTO stop (one, changes, record) VALUES (1, 0, NULL);
