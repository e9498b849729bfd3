-- Frozen. What is to change later is a migration of its own.

-- Machines that load balancers are to send no traffic to, or were until lately. n: their order.
CREATE TABLE out_of_service (
    pool INTEGER NOT NULL REFERENCES pools (id) ON DELETE CASCADE,
    n INTEGER NOT NULL,
    record TEXT NOT NULL,
    PRIMARY KEY (pool, n)
) STRICT, WITHOUT ROWID;
