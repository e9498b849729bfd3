-- Frozen. What is to change later is a migration of its own.

-- The set that the pool's journal is about: null until an entry is written. What is open is looked after by it, though no
-- pool file names the pool any more.
ALTER TABLE pools ADD COLUMN scale_set TEXT;
