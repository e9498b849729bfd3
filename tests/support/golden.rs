//! Texts that were read once and agreed to.

use std::fs;
use std::path::Path;

/// Compares with what is kept under `tests/golden/`; `UPDATE_GOLDEN=1` keeps this instead.
pub fn golden(name: &str, is: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name);
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, is).unwrap();
        return;
    }
    let kept = fs::read_to_string(&path).unwrap_or_default();
    assert!(
        kept == is,
        "{name} differs; UPDATE_GOLDEN=1 writes it anew.\n--- kept\n{kept}\n--- is\n{is}"
    );
}
