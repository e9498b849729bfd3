//! `store`: on a file that a process has open, and on one that no process has.

use poolkeeper::adapters::sqlite::{Options, SqliteStore};

use super::program;
use super::support::*;

#[test]
fn a_store_is_copied_while_it_is_open_and_put_back_when_it_is_not() {
    let (path, copy) =
        (program::file("cli-store", "pools.db"), program::file("cli-store", "copy.db"));
    let _ = std::fs::remove_dir_all(std::path::Path::new(&path).parent().unwrap());
    let path = program::file("cli-store", "pools.db");
    let open = SqliteStore::open(&Options::new(&path, "a test")).unwrap();
    let store = |args: &[&str]| run(&[&["store"], args, &["--store", &path]].concat(), "");
    let made = store(&["backup", &copy]);
    assert!(made.code == Some(0) && made.out.contains("copied to"), "{made:?}");
    let checked = run(&["store", "check", &copy, "-o", "json"], "").json();
    assert_eq!((&checked["kind"], &checked["pools"]), (&"StoreSummary".into(), &0.into()));
    let refused = store(&["restore", &copy]);
    assert!(refused.code == Some(1) && refused.err.contains("in use by a test"), "{refused:?}");
    drop(open);
    let restored = store(&["restore", &copy]);
    assert!(restored.code == Some(0) && restored.out.contains("is kept"), "{restored:?}");
    let whole = store(&["check"]);
    assert!(whole.code == Some(0) && whole.out.starts_with("whole:"), "{whole:?}");
    let nothing = run(&["store", "check", "--store", "no/such/store.db"], "");
    assert!(nothing.code == Some(1) && nothing.err.contains("holds no store"), "{nothing:?}");
}
