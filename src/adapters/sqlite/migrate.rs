//! Schema versions. A migration is frozen once released. The file stores its version in `user_version`.

use rusqlite::Connection;

/// Each migrates a file from its index in this list to the next.
const MIGRATIONS: &[&str] = &[
    include_str!("migrations/0001.sql"),
    include_str!("migrations/0002.sql"),
    include_str!("migrations/0003.sql"),
    include_str!("migrations/0004.sql"),
    include_str!("migrations/0005.sql"),
    include_str!("migrations/0006.sql"),
    include_str!("migrations/0007.sql"),
];
/// The schema that this program writes.
pub(super) const KNOWN: u32 = MIGRATIONS.len() as u32;

/// A step failed. The file stays at the previous version.
#[derive(Debug)]
pub(super) struct MigrationFailed {
    pub number: u32,
    pub source: rusqlite::Error,
}

/// Migrates a file from schema `found` to [`KNOWN`]. Each step is atomic.
pub(super) fn migrate(db: &Connection, found: u32) -> Result<(), MigrationFailed> {
    for (number, sql) in (1..).zip(MIGRATIONS).skip(found as usize) {
        if let Err(source) = step(db, number, sql) {
            let _ended = db.execute_batch("ROLLBACK");
            return Err(MigrationFailed { number, source });
        }
    }
    Ok(())
}

/// Two processes may find the same file at the same version. The second one sees, under the lock, that the step is
/// done.
fn step(db: &Connection, number: u32, sql: &str) -> Result<(), rusqlite::Error> {
    db.execute_batch("BEGIN IMMEDIATE")?;
    let found: u32 = db.pragma_query_value(None, "user_version", |row| row.get(0))?;
    let sql = if found < number { sql } else { "" };
    let number = found.max(number);
    db.execute_batch(&format!("{sql} PRAGMA user_version = {number}; COMMIT;"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn schema(db: &Connection) -> Vec<String> {
        let sql = "SELECT coalesce(sql, name) FROM sqlite_schema ORDER BY type, name";
        let mut rows = db.prepare(sql).unwrap();
        let rows = rows.query_map([], |row| row.get(0)).unwrap();
        rows.map(Result::unwrap).collect()
    }

    /// FNV-1a, to detect a change to a frozen migration.
    fn print_of(text: &str) -> u64 {
        text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        })
    }

    #[test]
    fn released_migrations_are_frozen() {
        let prints: Vec<String> =
            MIGRATIONS.iter().map(|sql| format!("{:016x}", print_of(sql))).collect();
        assert_eq!(
            prints,
            [
                "123c5e84a150aab1",
                "9d19a56c911a3211",
                "0e85973c139e238f",
                "f6aef2a2a433ebb7",
                "1fe0abc2d29eef01",
                "86f63daf21523737",
                "a4072aa44faf2796"
            ],
            "write a new migration instead of changing one"
        );
    }

    #[test]
    fn a_file_is_brought_up_once_and_then_left_alone() {
        let db = Connection::open_in_memory().unwrap();
        migrate(&db, 0).unwrap();
        let version: u32 = db.pragma_query_value(None, "user_version", |row| row.get(0)).unwrap();
        assert_eq!(version, KNOWN);
        let before = schema(&db);
        migrate(&db, version).unwrap();
        assert_eq!(schema(&db), before);
    }

    #[test]
    fn an_empty_file_that_another_process_fills_meanwhile_is_left_alone() {
        let db = Connection::open_in_memory().unwrap();
        migrate(&db, 0).unwrap();
        let before = schema(&db);
        migrate(&db, 0).unwrap();
        assert_eq!(schema(&db), before);
        // Migrated by a newer program.
        db.pragma_update(None, "user_version", KNOWN + 1).unwrap();
        migrate(&db, 0).unwrap();
        let version: u32 = db.pragma_query_value(None, "user_version", |row| row.get(0)).unwrap();
        assert_eq!(version, KNOWN + 1);
    }

    #[test]
    fn a_step_that_fails_leaves_the_file_as_it_was() {
        let db = Connection::open_in_memory().unwrap();
        db.execute_batch("CREATE TABLE history (x)").unwrap();
        let before = schema(&db);
        assert_eq!(migrate(&db, 0).unwrap_err().number, 1);
        assert_eq!(schema(&db), before);
        let version: u32 = db.pragma_query_value(None, "user_version", |row| row.get(0)).unwrap();
        assert_eq!(version, 0);
    }
}
