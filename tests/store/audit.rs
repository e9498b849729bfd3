//! The audit in a file: no line goes before its time, and a line that is changed or taken away is found.

use std::path::Path;

use poolkeeper::adapters::sqlite::{AuditCheck, ChainBreak, check};
use poolkeeper::memory::{ApiStore, AuditEntry, Commit, Keep, Seq, TurnStore};
use poolkeeper::model::ids::PoolName;
use poolkeeper::model::time::{Span, Time};

use super::{Folder, open, wait};

fn line(day: i64) -> AuditEntry {
    AuditEntry {
        at: Time::from_millis(0).plus(Span::days(day)),
        who: "ann".into(),
        verb: "pause".into(),
        pool: None,
        on: "".into(),
        why: "because".into(),
        came: "asked".into(),
        consent: None,
    }
}

fn written(path: &Path, days: std::ops::Range<i64>) {
    let store = open(path);
    for day in days {
        wait(store.audit(&line(day))).unwrap();
    }
}

fn audited(path: &Path) -> AuditCheck {
    check(path).unwrap().audited
}

fn whole(lines: u64) -> AuditCheck {
    AuditCheck { lines, broken: None }
}

#[test]
fn a_line_that_is_changed_or_taken_away_is_found() {
    let folder = Folder::new();
    for (number, (deed, broken)) in [
        (
            "UPDATE audits SET record = replace(record, 'ann', 'bob') WHERE seq = 3",
            ChainBreak::Line(Seq(3)),
        ),
        ("UPDATE audits SET hash = NULL WHERE seq = 4", ChainBreak::Line(Seq(4))),
        ("DELETE FROM audits WHERE seq = 2", ChainBreak::Line(Seq(3))),
        ("DELETE FROM audits WHERE seq = 1", ChainBreak::Line(Seq(2))),
        ("DELETE FROM audits WHERE seq >= 4", ChainBreak::End(Seq(5))),
        ("DELETE FROM audits", ChainBreak::End(Seq(5))),
    ]
    .into_iter()
    .enumerate()
    {
        let path = folder.file(&format!("{number}.db"));
        written(&path, 0..5);
        assert_eq!(audited(&path), whole(5));
        rusqlite::Connection::open(&path).unwrap().execute_batch(deed).unwrap();
        assert_eq!(audited(&path).broken, Some(broken), "{deed}");
    }
}

#[test]
fn what_retention_removes_leaves_a_whole_chain() {
    let folder = Folder::new();
    let path = folder.file("pools.db");
    written(&path, 0..5);
    let keep = Keep { history: Span::days(1), audit: Span::days(2) };
    let swept = wait(open(&path).sweep(&keep, line(4).at)).unwrap();
    assert_eq!((swept.lines, swept.audit), (2, 3));
    assert_eq!(audited(&path), whole(3));
    let swept = wait(open(&path).sweep(&keep, line(9).at)).unwrap();
    assert_eq!((swept.lines, swept.audit), (3, 0));
    assert_eq!(audited(&path), whole(0));
    written(&path, 9..11);
    assert_eq!(audited(&path), whole(2));
}

/// Lines that an older program wrote have no hash, and the chain begins after them.
#[test]
fn the_chain_begins_after_the_lines_of_an_older_program() {
    let folder = Folder::new();
    let path = folder.file("pools.db");
    written(&path, 0..2);
    let db = rusqlite::Connection::open(&path).unwrap();
    db.execute_batch(
        "DROP TABLE stop; DROP TABLE audit_chain; ALTER TABLE audits DROP COLUMN hash;
         DROP TABLE notices; DROP TABLE out_of_service; ALTER TABLE pools DROP COLUMN frozen;
         PRAGMA user_version = 3",
    )
    .unwrap();
    drop(db);
    written(&path, 2..5);
    assert_eq!(audited(&path), whole(3));
    let keep = Keep { history: Span::days(1), audit: Span::days(1) };
    wait(open(&path).sweep(&keep, line(2).at)).unwrap();
    assert_eq!(audited(&path), whole(3));
    wait(open(&path).sweep(&keep, line(4).at)).unwrap();
    assert_eq!(audited(&path), whole(2));
    let copy = folder.file("pools.db.schema-3");
    assert_eq!(audited(&copy), whole(0), "an older schema has no chain");
}

/// More lines than an older program kept, all of one day.
#[test]
fn no_line_goes_before_its_time() {
    let folder = Folder::new();
    let path = folder.file("pools.db");
    let store = open(&path);
    let epoch = wait(store.acquire("we", line(0).at, Span::days(9))).unwrap().epoch;
    let lines = 100_001;
    let audit = vec![line(1); lines];
    let commit = Commit::new(PoolName::new("web"), epoch, line(1).at);
    wait(store.commit(&Commit { audit, ..commit })).unwrap();
    wait(store.audit(&line(1))).unwrap();
    let keep = Keep { history: Span::days(1), audit: Span::days(365) };
    let swept = wait(store.sweep(&keep, line(300).at)).unwrap();
    assert_eq!((swept.lines, swept.audit), (0, lines as u64 + 1));
    let first = wait(store.audits_after(Seq::FIRST, 1)).unwrap();
    assert_eq!(first[0].0, Seq(1));
}
