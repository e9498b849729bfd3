-- Frozen. What is to change later is a migration of its own.

-- Which store this is, for as long as the file lasts: the owner tag of a scale set names it.
CREATE TABLE installation (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    id TEXT NOT NULL
) STRICT;
INSERT INTO installation (one, id) VALUES (1, lower(hex(randomblob(16))));
