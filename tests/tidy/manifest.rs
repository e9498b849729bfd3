//! As much of `Cargo.toml` as the rules ask about: which crates it names, which test and bench targets.

use crate::tree::Source;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dependency {
    /// As code spells it: `serde_json`, `clap_complete`.
    pub name: String,
    /// Only tests and benches can use it.
    pub dev: bool,
    pub line: usize,
}

/// A `[[test]]`, `[[bench]]`, `[[bin]]` or `[[example]]` section.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    pub kind: String,
    pub name: String,
    pub path: String,
    pub line: usize,
}

pub fn dependencies(manifest: &Source) -> Vec<Dependency> {
    let mut found = Vec::new();
    for (section, line, key, _) in entries(manifest) {
        let inside = section.rsplit_once("dependencies").filter(|(before, _)| {
            before.is_empty() || before.ends_with(['.', '-']) || before.ends_with("target.")
        });
        let Some((before, after)) = inside else { continue };
        // `[dependencies.x]` names the crate in the section, once; `[dependencies]` in each key.
        let name = match after.strip_prefix('.') {
            Some(name) => name,
            None => key.split('.').next().unwrap_or(key),
        };
        let name = name.trim_matches('"').replace('-', "_");
        let dev = before.ends_with("dev-");
        if !found.iter().any(|d: &Dependency| d.name == name && d.dev == dev) {
            found.push(Dependency { name, dev, line });
        }
    }
    found
}

pub fn targets(manifest: &Source) -> Vec<Target> {
    let mut found: Vec<Target> = Vec::new();
    for (at, text) in manifest.text.lines().enumerate() {
        let kind = text.trim().strip_prefix("[[").and_then(|t| t.strip_suffix("]]"));
        if let Some(kind) = kind {
            let (name, path) = (String::new(), String::new());
            found.push(Target { kind: kind.to_owned(), name, path, line: at + 1 });
        }
    }
    for (section, line, key, value) in entries(manifest) {
        let of = found.iter_mut().rfind(|t| t.line < line && format!("[{}]", t.kind) == section);
        match (of, key) {
            (Some(target), "name") => value.trim_matches('"').clone_into(&mut target.name),
            (Some(target), "path") => value.trim_matches('"').clone_into(&mut target.path),
            _ => {}
        }
    }
    found
}

/// Section, line, key and value of each `key = value` line.
fn entries(manifest: &Source) -> Vec<(&str, usize, &str, &str)> {
    let mut section = "";
    let mut found = Vec::new();
    for (at, line) in manifest.text.lines().enumerate() {
        let line = line.trim();
        if let Some(name) = line.strip_prefix('[').and_then(|l| l.strip_suffix(']')) {
            section = name;
        } else if let Some((key, value)) = line.split_once('=').filter(|_| !line.starts_with('#')) {
            found.push((section, at + 1, key.trim(), value.trim()));
        }
    }
    found
}

#[test]
fn crates_and_targets_are_read() {
    let manifest = Source::new(
        "Cargo.toml",
        r#"
[package]
name = "x"
[dependencies]
serde = { version = "1" }
clap-x.workspace = true
[target.'cfg(unix)'.dependencies]
libc = "1"
[dependencies.big-one]
version = "2"
features = ["a"]
[dev-dependencies]
# old = "1"
proptest = "1"
[lints.rust]
unsafe_code = "forbid"
[[test]]
name = "plan"
path = "tests/plan.rs"
[[bench]]
name = "turn"
harness = false
"#,
    );
    let found = dependencies(&manifest);
    let names: Vec<_> = found.iter().map(|d| (d.name.as_str(), d.dev)).collect();
    let normal = [("serde", false), ("clap_x", false), ("libc", false), ("big_one", false)];
    assert_eq!(names, [&normal[..], &[("proptest", true)]].concat());
    let targets: Vec<_> =
        targets(&manifest).into_iter().map(|t| (t.kind, t.name, t.path, t.line)).collect();
    let test = ("test".to_owned(), "plan".to_owned(), "tests/plan.rs".to_owned(), 17);
    assert_eq!(targets, [test, ("bench".to_owned(), "turn".to_owned(), String::new(), 20)]);
}
