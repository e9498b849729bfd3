//! The repository as text: which files there are, and how a broken rule is told.

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

/// A file to judge. `path` is relative to the repository, with `/` between its parts.
#[derive(Debug, Clone)]
pub struct Source {
    pub path: String,
    pub text: String,
}

/// A rule broken at a place, and what to do about it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Violation {
    pub path: String,
    pub line: usize,
    pub rule: &'static str,
    pub say: String,
}

impl Source {
    pub fn new(path: &str, text: &str) -> Self {
        Self { path: path.to_owned(), text: text.to_owned() }
    }

    pub fn breaks(&self, line: usize, rule: &'static str, say: impl Into<String>) -> Violation {
        Violation { path: self.path.clone(), line, rule, say: say.into() }
    }

    pub fn is_rust(&self) -> bool {
        has_extension(&self.path, "rs")
    }

    pub fn in_folder(&self, folder: &str) -> bool {
        self.path.strip_prefix(folder).is_some_and(|rest| rest.starts_with('/'))
    }

    /// Its modules from the crate root: `src/plan/order.rs` is `plan`, `order`.
    pub fn module(&self) -> Vec<&str> {
        let inside = self.path.strip_prefix("src/").unwrap_or(&self.path);
        let mut parts: Vec<&str> = inside.trim_end_matches(".rs").split('/').collect();
        if matches!(parts.last(), Some(&"mod" | &"lib" | &"main")) {
            parts.pop();
        }
        parts
    }

    /// The room a source file belongs to; `main` and `lib` for the two roots.
    pub fn room(&self) -> String {
        match (self.path.as_str(), self.module().as_slice()) {
            ("src/main.rs", _) => "main".to_owned(),
            (_, []) => "lib".to_owned(),
            (_, ["adapters", world, ..]) => format!("adapters::{world}"),
            (_, [room, ..]) => (*room).to_owned(),
        }
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: [{}] {}", self.path, self.line, self.rule, self.say)
    }
}

pub fn has_extension(path: &str, wanted: &str) -> bool {
    Path::new(path).extension().is_some_and(|e| e == wanted)
}

/// The tree that cargo runs this test for; the one it was built from only where started by hand.
pub fn root() -> PathBuf {
    std::env::var_os("CARGO_MANIFEST_DIR")
        .map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")), PathBuf::from)
}

/// Names at the top level, folders with a `/` behind them.
pub fn top_level() -> Vec<String> {
    entries(&root())
        .into_iter()
        .map(|(name, is_dir)| if is_dir { name + "/" } else { name })
        .collect()
}

/// Every text file under these files and folders, by path; whatever is not text is passed over.
pub fn read(under: &[&str]) -> Vec<Source> {
    let mut found = Vec::new();
    for name in under {
        walk(name, &mut found);
    }
    found.sort_by(|a, b| a.path.cmp(&b.path));
    found
}

fn walk(path: &str, found: &mut Vec<Source>) {
    let full = root().join(path);
    if full.is_dir() {
        for (name, _) in entries(&full) {
            // Suites under integration/ install what they need beside themselves; that is not our text.
            if !matches!(name.as_str(), "target" | "node_modules" | ".git" | ".venv") {
                walk(&format!("{path}/{name}"), found);
            }
        }
    } else if let Ok(text) = fs::read_to_string(&full) {
        found.push(Source { path: path.to_owned(), text });
    }
}

fn entries(folder: &Path) -> Vec<(String, bool)> {
    let mut names: Vec<(String, bool)> = fs::read_dir(folder)
        .unwrap_or_else(|e| panic!("cannot list {}: {e}", folder.display()))
        .map(|entry| entry.expect("a folder entry that can be read"))
        .map(|entry| (entry.file_name().to_string_lossy().into_owned(), entry.path().is_dir()))
        .collect();
    names.sort();
    names
}

#[test]
fn a_path_names_its_module_and_room() {
    let room = |path| Source::new(path, "").room();
    assert_eq!(Source::new("src/plan/order.rs", "").module(), ["plan", "order"]);
    assert_eq!(Source::new("src/plan/mod.rs", "").module(), ["plan"]);
    assert_eq!(room("src/ambient.rs"), "ambient");
    assert_eq!(room("src/adapters/azure/wire/mod.rs"), "adapters::azure");
    assert_eq!(room("src/adapters/mod.rs"), "adapters");
    assert_eq!((room("src/main.rs"), room("src/lib.rs")), ("main".into(), "lib".into()));
}
