//! `schema`, and the part of `explain` about pool files: what a key does, takes and defaults to.
//!
//! Never here: a fact about a key; the format's own table says it. Begin with [`SchemaCommand::run`] or
//! [`KeyArgs::explain`].

use clap::Args;
use serde_json::{Value, json};

use super::exit::{CommandFailure, Exit, with_exit_codes};
use super::output::Shell;
use super::table::{Cell, Table, push_line};
use super::term::{Style, Term};
use super::text::wrap;
use crate::api::v1::API_VERSION;
use crate::api::v1::diagnostic::quote;
use crate::api::v1::pool::{KeyPath, KeyReference, file_schema, find_key, flow, key_paths};

const ABOUT: &str = "Prints the JSON Schema of a pool file";
const MORE: &str = "\
Prints the JSON Schema (draft 2020-12) of a pool file: every key with its description, values, default and an example. \
Editors complete and check pool files by it. In an editor with the YAML language server, the first line of a pool file \
names it: `# yaml-language-server: $schema=pool.schema.json`. A key without a value counts as left out; `validate` also \
checks what a schema cannot, such as keys that contradict each other.";
const EXAMPLES: &str = "\
Examples:
  poolkeeper schema > pools/pool.schema.json
  poolkeeper schema -o json | jq '.properties.rollout.properties | keys'
  poolkeeper explain --key rollout.maxSurge     one key, for people";

#[derive(Debug, Args)]
#[command(
    about = ABOUT,
    long_about = format!("{ABOUT}.\n\n{MORE}"),
    after_long_help = with_exit_codes(EXAMPLES)
)]
pub struct SchemaCommand {}

impl SchemaCommand {
    #[expect(clippy::unused_self, reason = "every command runs alike")]
    pub(super) fn run(&self, shell: &mut Shell) -> Result<Exit, CommandFailure> {
        let is_json = shell.one_document("schema")?;
        let schema = file_schema();
        shell.line(&if is_json { schema.to_string() } else { format!("{schema:#}") })?;
        Ok(Exit::Done)
    }
}

/// Questions about the keys of a pool file.
#[derive(Debug, Args)]
pub(super) struct KeyArgs {
    /// Explain a key of the pool file, such as rollout.maxSurge; `''` lists all keys
    #[arg(long, value_name = "KEY", hide_short_help = true, conflicts_with_all = ["snapshot", "pool"])]
    key: Option<String>,

    /// List every key of the pool file
    #[arg(long, hide_short_help = true, conflicts_with_all = ["key", "snapshot", "pool"])]
    keys: bool,
}

impl KeyArgs {
    /// Answers, if a key was asked for.
    pub fn explain(&self, shell: &mut Shell) -> Result<Option<Exit>, CommandFailure> {
        let is_json = shell.one_document("explain")?;
        let name = match (&self.key, self.keys) {
            (Some(name), _) if !name.trim().is_empty() => name,
            (Some(_), _) | (None, true) => return list(is_json, shell).map(Some),
            (None, false) => return Ok(None),
        };
        let found = find_key(name).map_err(|near| unknown(name, near))?;
        if is_json {
            shell.line(&document(&found).to_string())?;
        } else {
            shell.print(&page(&found, shell.term))?;
        }
        Ok(Some(Exit::Done))
    }
}

fn unknown(name: &str, near: Option<String>) -> CommandFailure {
    let say = format!("a pool file has no key {}", quote(name));
    let failure = CommandFailure::new(Exit::NotFound, "notFound", say);
    failure.help(match near {
        Some(near) => format!("did you mean {near}? `explain --keys` lists all"),
        None => "`explain --keys` lists all".to_owned(),
    })
}

fn list(is_json: bool, shell: &mut Shell) -> Result<Exit, CommandFailure> {
    let all = key_paths();
    if is_json {
        let items: Vec<Value> = all.iter().map(entry).collect();
        let document = json!({ "apiVersion": API_VERSION, "kind": "PoolKeyList", "items": items });
        shell.line(&document.to_string())?;
    } else {
        shell.table(&rows(&all), shell.term.width)?;
    }
    Ok(Exit::Done)
}

fn rows(all: &[KeyPath]) -> Table {
    let mut table = Table::new(0);
    table.heading(&["KEY", "DEFAULT", "MEANING"]);
    for KeyPath { path, key } in all {
        let sentence = first_sentence(&key.about);
        table.row([path.as_str().into(), default(key).into(), sentence.into()]);
    }
    table
}

/// The default as a file writes it.
fn default(key: &KeyReference) -> String {
    match &key.default {
        Some(default) => flow(default),
        None if key.is_required => "required".to_owned(),
        None => "-".to_owned(),
    }
}

pub(super) fn first_sentence(text: &str) -> &str {
    text.split_inclusive(". ").next().unwrap_or(text).trim_end()
}

fn page(found: &KeyPath, term: Term) -> String {
    let KeyPath { path, key } = found;
    let mut page = String::new();
    push_line(&mut page, &term.paint(Style::Bold, path));
    for line in wrap(&key.about, term.width.map(|wide| wide.saturating_sub(2))) {
        push_line(&mut page, &format!("  {line}"));
    }
    push_line(&mut page, "");
    let mut table = Table::new(2);
    let mut row = |name: &str, text: String| table.row([Cell::new(name, Style::Dim), text.into()]);
    row("Values", key.form.words.clone());
    row(
        "Default",
        if key.default.is_none() && key.is_required {
            "none: the key is required".into()
        } else {
            default(key)
        },
    );
    if let Some(example) = &key.example {
        row("Example", format!("{}: {}", key.name, flow(example)));
    }
    table.draw(term, &mut page);
    let inside = inside(found);
    if !inside.is_empty() {
        push_line(&mut page, "");
        rows(&inside).draw(term, &mut page);
    }
    page
}

/// The keys directly inside a key, under their own names.
fn inside(found: &KeyPath) -> Vec<KeyPath> {
    let each = found.key.form.keys.iter();
    each.map(|key| KeyPath { path: key.name.to_owned(), key: key.clone() }).collect()
}

fn document(found: &KeyPath) -> Value {
    let mut document = entry(found);
    if let Some(keys) = document.as_object_mut() {
        keys.insert("apiVersion".into(), API_VERSION.into());
        keys.insert("kind".into(), "PoolKey".into());
        keys.insert("schema".into(), found.key.schema());
    }
    document
}

fn entry(found: &KeyPath) -> Value {
    let KeyPath { path, key } = found;
    let names: Vec<&str> = key.form.keys.iter().map(|key| key.name).collect();
    json!({
        "key": path,
        "message": key.about,
        "values": key.form.words,
        "default": key.default,
        "example": key.example,
        "required": key.is_required,
        "keys": names,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::v1::pool::PoolDocuments;

    /// An example that is wrong would teach wrong keys.
    #[test]
    fn each_example_at_the_top_is_accepted() {
        let least = [
            ("apiVersion", "poolkeeper/v1".to_owned()),
            ("kind", "Pool".to_owned()),
            ("name", "web".to_owned()),
            (
                "scaleSet",
                "/subscriptions/s/resourceGroups/g/providers/Microsoft.Compute/virtualMachineScaleSets/web"
                    .to_owned(),
            ),
            ("replicas", "{owner: pool, count: 3}".to_owned()),
            // Some keys of drain are for pools with one only.
            ("cluster", "prod".to_owned()),
        ];
        let of = |path: &str, value: &Value| match path.split_once('.') {
            None => (path.to_owned(), flow(value)),
            Some((section, key)) => (section.to_owned(), format!("{{{key}: {}}}", flow(value))),
        };
        for KeyPath { path, key } in key_paths() {
            let depth = path.matches('.').count();
            let Some(example) = key.example.filter(|_| depth < 2 && !path.contains('[')) else {
                continue;
            };
            // Two keys of these sections belong together.
            if path.starts_with("replicas.") || path == "autoscaler.setting" {
                continue;
            }
            let (name, value) = of(&path, &example);
            let rest = least.iter().filter(|(known, _)| *known != name);
            let beside = path.starts_with("autoscaler");
            let value_of = |key: &str, value: &str| match key {
                "replicas" if beside => "{owner: scaleSet}".to_owned(),
                _ => value.to_owned(),
            };
            let lines = rest.map(|(key, value)| format!("{key}: {}\n", value_of(key, value)));
            let text = lines.collect::<String>() + &format!("{name}: {value}\n");
            let (pools, faults) = PoolDocuments::default().read(&text, None);
            assert!(faults.is_empty() && pools.len() == 1, "{text}{faults:?}");
        }
    }

    #[test]
    fn a_page_has_all_of_a_key() {
        let found = find_key("rollout.maxSurge").unwrap();
        let page = page(&found, Term::PLAIN);
        for part in ["rollout.maxSurge\n", "Values ", "Default  1\n", "Example  maxSurge: 10%\n"] {
            assert!(page.contains(part), "{page}");
        }
        let section = super::page(&find_key("repair").unwrap(), Term::PLAIN);
        for part in ["after", "window", "maxAtOnce", "breaker", "40%"] {
            assert!(section.contains(part), "{section}");
        }
        let failure = unknown("rollout.maxsurge", find_key("rollout.maxsurge").unwrap_err());
        assert!(
            failure.report.help.as_ref().unwrap().starts_with("did you mean rollout.maxSurge?")
        );
    }
}
