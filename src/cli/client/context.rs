//! Contexts: named servers in a file of the person, and the one that a command uses.
//!
//! Never here: a token. The file says where a token comes from.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde::Serialize;

use super::environment::set;
use crate::api::client::{Rights, read_guarded};
use crate::api::v1::diagnostic::{Code, Diagnostic, TextPlace, quote};
use crate::api::v1::node::{self, Node, NodeEntry, NodeKind};
use crate::api::v1::problem::DocumentProblem;
use crate::cli::exit::{CommandFailure, Exit};
use crate::cli::file::{FileAccess, replace};
use crate::cli::text::{alike, list, plain};
use crate::cli::yaml::JsonTree;

/// Names the file, wherever it is.
const FILE: &str = "POOLKEEPER_CLIENT_FILE";
/// Names the context of a shell.
pub(in crate::cli) const CONTEXT: &str = "POOLKEEPER_CONTEXT";

const KEYS: [&str; 8] = [
    "name",
    "server",
    "tokenFile",
    "tokenEnv",
    "tokenCommand",
    "ca",
    "clientCertificate",
    "clientKey",
];
/// The most names that an error lists.
const NAMES: usize = 8;

/// A server by its name. Paths are relative to the folder of the file.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(in crate::cli) struct ClientContext {
    pub name: String,
    pub server: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub token_file: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub token_env: Option<String>,
    /// The program that prints the token, and its arguments.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub token_command: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ca: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client_certificate: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client_key: Option<String>,
    #[serde(skip)]
    folder: PathBuf,
}

/// The file of the contexts.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub(in crate::cli) struct ClientSettings {
    pub current: Option<String>,
    pub contexts: Vec<ClientContext>,
    #[serde(skip)]
    path: Option<PathBuf>,
}

/// The context that a command uses: the named one, that of the shell, or the current one. A server that an option or
/// a variable names is used without a context, so that no token reaches a server for which it is not.
pub(super) fn chosen(
    named: Option<&str>,
    server: Option<&str>,
) -> Result<Option<ClientContext>, CommandFailure> {
    let of_shell = set("POOLKEEPER_SERVER");
    match (named, server, &of_shell) {
        (Some(_), Some(_), _) => {
            return Err(CommandFailure::usage("--server and --context both name a server")
                .help("leave one of them out"));
        }
        (Some(name), None, Some(server)) => {
            let say = format!("POOLKEEPER_SERVER names {}, and --context {name}", plain(server));
            return Err(CommandFailure::usage(say).help("unset POOLKEEPER_SERVER, or use --server"));
        }
        (None, Some(_), _) | (None, None, Some(_)) => return Ok(None),
        _ => {}
    }
    let settings = ClientSettings::read()?;
    match named.map(str::to_owned).or_else(|| settings.effective()) {
        Some(name) => settings.find(&name).cloned().map(Some),
        None => Ok(None),
    }
}

impl ClientSettings {
    /// A missing file holds no contexts.
    pub fn read() -> Result<Self, CommandFailure> {
        let Some(path) = path() else { return Ok(Self::default()) };
        let bytes = match read_guarded(&path, Rights::OnlyOwnerWrites) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == ErrorKind::NotFound => {
                return Ok(Self { path: Some(path), ..Self::default() });
            }
            Err(error) => return Err(unreadable(&path, &error)),
        };
        let name = path.display().to_string();
        let text = node::text(&bytes).map_err(|fault| faulty(&[*fault], &name, None))?;
        let (mut settings, faults) = decode(text);
        if !faults.is_empty() {
            return Err(faulty(&faults, &name, Some(text)));
        }
        let folder = path.parent().unwrap_or(Path::new("")).to_owned();
        settings.contexts.iter_mut().for_each(|context| context.folder.clone_from(&folder));
        Ok(Self { path: Some(path), ..settings })
    }

    /// Replaces the file.
    pub fn write(&self) -> Result<(), CommandFailure> {
        let Some(path) = &self.path else {
            return Err(CommandFailure::usage("there is no folder for settings")
                .help(format!("set HOME, or name a file in {FILE}")));
        };
        let json = serde_json::to_string(self).unwrap_or_default();
        let tree: JsonTree = serde_json::from_str(&json).map_err(|error| {
            CommandFailure::new(Exit::Internal, "internal", format!("no settings: {error}"))
        })?;
        replace(path, tree.yaml().as_bytes(), FileAccess::OnlyOwner)
            .map_err(|error| CommandFailure::unwritable_file(&path.display().to_string(), &error))
    }

    /// The context that commands use, unless an option names one.
    pub fn effective(&self) -> Option<String> {
        set(CONTEXT).or_else(|| self.current.clone())
    }

    pub fn find(&self, name: &str) -> Result<&ClientContext, CommandFailure> {
        let found = self.contexts.iter().find(|context| context.name == name);
        found.ok_or_else(|| self.unknown(name))
    }

    pub fn position(&self, name: &str) -> Result<usize, CommandFailure> {
        let at = self.contexts.iter().position(|context| context.name == name);
        at.ok_or_else(|| self.unknown(name))
    }

    fn unknown(&self, name: &str) -> CommandFailure {
        let names: Vec<&str> = self.contexts.iter().map(|context| context.name.as_str()).collect();
        let near = alike(&names, name).into_iter().next();
        let help = match (near, names.is_empty()) {
            (Some(near), _) => format!("did you mean {}?", plain(near)),
            (None, false) => format!("there are: {}", list(names.into_iter(), NAMES)),
            (None, true) => "`poolkeeper context set NAME --server URL` adds one".to_owned(),
        };
        let say = format!("there is no context {}", plain(name));
        CommandFailure::new(Exit::NotFound, "notFound", say).help(help)
    }
}

impl ClientContext {
    /// The same, with paths that hold from every folder.
    fn path(&self, written: Option<&String>) -> Option<PathBuf> {
        written.map(|path| self.folder.join(path))
    }

    pub fn ca(&self) -> Option<PathBuf> {
        self.path(self.ca.as_ref())
    }

    /// The token, from where the context says.
    pub fn token(&self) -> Result<Option<String>, CommandFailure> {
        if let Some(path) = self.path(self.token_file.as_ref()) {
            return secret(&path).map(Some);
        }
        if let Some(name) = &self.token_env {
            let missing = || self.without_token(&format!("{} is not set", plain(name)));
            return set(name).ok_or_else(missing).map(Some);
        }
        let Some((program, args)) = self.token_command.split_first() else { return Ok(None) };
        // What the command says about its failure goes to the person.
        let mut command = Command::new(program);
        command.args(args).stdin(Stdio::null()).stderr(Stdio::inherit());
        let ended = command.output().map_err(|error| {
            self.without_token(&format!("{} does not start: {error}", plain(program)))
        })?;
        let token = String::from_utf8_lossy(&ended.stdout).trim().to_owned();
        match (ended.status.success(), token.is_empty()) {
            (true, false) => Ok(Some(token)),
            (true, true) => Err(self.without_token(&format!("{} prints nothing", plain(program)))),
            (false, _) => {
                Err(self.without_token(&format!("{} fails with {}", plain(program), ended.status)))
            }
        }
    }

    fn without_token(&self, why: &str) -> CommandFailure {
        let name = plain(&self.name);
        let say = format!("the context {name} gives no token: {why}");
        CommandFailure::new(Exit::NotPermitted, "unauthenticated", say)
            .help(format!("`poolkeeper context set {name}` says where the token comes from"))
    }

    /// The client certificate with its key, in PEM.
    pub fn identity(&self) -> Result<Option<Vec<u8>>, CommandFailure> {
        let certificate = self.path(self.client_certificate.as_ref());
        let (Some(certificate), Some(key)) = (certificate, self.path(self.client_key.as_ref()))
        else {
            return Ok(None);
        };
        let mut pem =
            std::fs::read(&certificate).map_err(|error| unreadable(&certificate, &error))?;
        pem.push(b'\n');
        pem.extend_from_slice(secret(&key)?.as_bytes());
        Ok(Some(pem))
    }

    /// Where the token comes from, for people.
    pub fn token_source(&self) -> String {
        match (&self.token_file, &self.token_env, self.token_command.first()) {
            (Some(path), ..) => format!("file {path}"),
            (None, Some(name), _) => format!("variable {name}"),
            (None, None, Some(program)) => format!("command {program}"),
            (None, None, None) => "-".to_owned(),
        }
    }
}

/// The path of the file; `None`: no variable names a place for it.
fn path() -> Option<PathBuf> {
    let at = |name: &str, rest: &str| {
        let folder = set(name).map(PathBuf::from).filter(|folder| folder.is_absolute())?;
        Some(folder.join(rest))
    };
    let named = set(FILE).map(PathBuf::from);
    let named = named.or_else(|| at("XDG_CONFIG_HOME", "poolkeeper/client.yaml"));
    named.or_else(|| at("HOME", ".config/poolkeeper/client.yaml"))
}

/// A file that only its owner and its group may read.
fn secret(path: &Path) -> Result<String, CommandFailure> {
    let bytes = read_guarded(path, Rights::Secret).map_err(|error| unreadable(path, &error))?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

fn unreadable(path: &Path, error: &std::io::Error) -> CommandFailure {
    let name = path.display().to_string();
    match error.kind() {
        // Its permissions; the message has the remedy.
        ErrorKind::Other => {
            let say = format!("{name} cannot be read: {error}");
            CommandFailure::new(Exit::Internal, "unreadable", say)
        }
        _ => CommandFailure::unreadable(&name, error),
    }
}

fn faulty(faults: &[Diagnostic], file: &str, text: Option<&str>) -> CommandFailure {
    let Some(problem) = DocumentProblem::of(faults) else {
        return CommandFailure::new(Exit::Input, "syntax", format!("{file} cannot be read"));
    };
    let failure = CommandFailure::bad_input(problem, Some(file));
    text.map_or_else(|| failure.clone(), |text| failure.clone().shown_in(text))
}

/// The settings that a text holds, and its faults.
fn decode(text: &str) -> (ClientSettings, Vec<Diagnostic>) {
    let read = node::read(text);
    let (mut settings, mut faults) = (ClientSettings::default(), read.diagnostics);
    let mut roots = read.roots.iter().map(|root| &root.node);
    if let Some(root) = roots.next().filter(|root| root.kind != NodeKind::Null) {
        for entry in entries(root, "", &mut faults) {
            match &*entry.key {
                "current" => settings.current = text_of(&entry.value, "current", &mut faults),
                "contexts" => settings.contexts = contexts(&entry.value, &mut faults),
                other => faults.push(unknown_key(entry.at, "", other, &["current", "contexts"])),
            }
        }
    }
    if let Some(second) = roots.next() {
        let say = "one document is read";
        faults.push(Diagnostic::new(second.at, "", Code::WrongType, say));
    }
    faults.sort_by_key(|fault| (fault.line, fault.column));
    (settings, faults)
}

fn contexts(node: &Node, faults: &mut Vec<Diagnostic>) -> Vec<ClientContext> {
    let NodeKind::List(items) = &node.kind else {
        if node.kind != NodeKind::Null {
            faults.push(wrong_type(node, "contexts", "a list"));
        }
        return Vec::new();
    };
    let mut found: Vec<ClientContext> = Vec::new();
    for (n, item) in items.iter().enumerate() {
        let context = context(item, &format!("contexts[{n}]"), faults);
        if !context.name.is_empty() && found.iter().any(|other| other.name == context.name) {
            let say = format!("another context has the name {}", quote(&context.name));
            let key = format!("contexts[{n}].name");
            faults.push(Diagnostic::new(item.at, key, Code::DuplicateKey, say));
        }
        found.push(context);
    }
    found
}

fn context(item: &Node, path: &str, faults: &mut Vec<Diagnostic>) -> ClientContext {
    let mut context = ClientContext::default();
    let before = faults.len();
    for entry in entries(item, path, faults) {
        let key = format!("{path}.{}", entry.key);
        let value = &entry.value;
        match &*entry.key {
            "name" => context.name = text_of(value, &key, faults).unwrap_or_default(),
            "server" => context.server = text_of(value, &key, faults).unwrap_or_default(),
            "tokenFile" => context.token_file = text_of(value, &key, faults),
            "tokenEnv" => context.token_env = text_of(value, &key, faults),
            "tokenCommand" => context.token_command = words_of(value, &key, faults),
            "ca" => context.ca = text_of(value, &key, faults),
            "clientCertificate" => context.client_certificate = text_of(value, &key, faults),
            "clientKey" => context.client_key = text_of(value, &key, faults),
            other => faults.push(unknown_key(entry.at, path, other, &KEYS)),
        }
    }
    if faults.len() > before {
        return context;
    }
    let missing = [("name", &context.name), ("server", &context.server)];
    for (key, _) in missing.into_iter().filter(|(_, value)| value.is_empty()) {
        let fault =
            Diagnostic::new(item.at, format!("{path}.{key}"), Code::MissingKey, "is missing");
        faults.push(fault.help(format!("write a line `{key}: …`")));
    }
    let sources = [
        context.token_file.is_some(),
        context.token_env.is_some(),
        !context.token_command.is_empty(),
    ];
    if sources.into_iter().filter(|is| *is).count() > 1 {
        let say = "the token comes from several places";
        let fault = Diagnostic::new(item.at, path, Code::Contradiction, say);
        faults.push(fault.help("keep one of tokenFile, tokenEnv and tokenCommand"));
    }
    if context.client_certificate.is_some() != context.client_key.is_some() {
        let say = "clientCertificate and clientKey need each other";
        faults.push(Diagnostic::new(item.at, path, Code::Contradiction, say));
    }
    context
}

fn entries<'n>(node: &'n Node, key: &str, faults: &mut Vec<Diagnostic>) -> &'n [NodeEntry] {
    match &node.kind {
        NodeKind::Map(entries) => entries,
        _ => {
            faults.push(wrong_type(node, key, "a map"));
            &[]
        }
    }
}

fn text_of(node: &Node, key: &str, faults: &mut Vec<Diagnostic>) -> Option<String> {
    match &node.kind {
        NodeKind::Text(text) if !text.text.trim().is_empty() => Some(text.text.to_string()),
        NodeKind::Number(text) => Some(text.to_string()),
        NodeKind::Null => None,
        _ => {
            faults.push(wrong_type(node, key, "text"));
            None
        }
    }
}

fn words_of(node: &Node, key: &str, faults: &mut Vec<Diagnostic>) -> Vec<String> {
    let NodeKind::List(items) = &node.kind else {
        let fault = wrong_type(node, key, "a list of words");
        faults.push(fault.help("write it like [az, account, get-access-token]"));
        return Vec::new();
    };
    items.iter().filter_map(|item| text_of(item, key, faults)).collect()
}

fn wrong_type(node: &Node, key: &str, wanted: &str) -> Diagnostic {
    let say = format!("must be {wanted}, and is {}", node.what());
    Diagnostic::new(node.at, key, Code::WrongType, say)
}

fn unknown_key(at: TextPlace, path: &str, key: &str, allowed: &[&'static str]) -> Diagnostic {
    let place = if path.is_empty() { quote(key) } else { format!("{path}.{}", quote(key)) };
    if key == "token" {
        let say = "a token does not stand in this file";
        return Diagnostic::new(at, place, Code::UnknownKey, say)
            .help("write the token to a file with mode 0600, and name that file in tokenFile");
    }
    let say = format!("there is no key {}", quote(key));
    Diagnostic::new(at, place, Code::UnknownKey, say).allowed(allowed, key)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn faults(text: &str) -> Vec<String> {
        decode(text).1.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_file_is_read_as_it_is_written() {
        let context = ClientContext {
            name: "prod".into(),
            server: "https://pools.example:7770".into(),
            token_command: vec!["az".into(), "account".into(), "it's: x".into()],
            ca: Some("ca.pem".into()),
            client_certificate: Some("c.pem".into()),
            client_key: Some("k.pem".into()),
            ..ClientContext::default()
        };
        let other = ClientContext {
            name: "lab".into(),
            server: "http://127.0.0.1:1".into(),
            token_env: Some("LAB".into()),
            ..ClientContext::default()
        };
        let settings = ClientSettings {
            current: Some("prod".into()),
            contexts: vec![context, other],
            path: None,
        };
        let json = serde_json::to_string(&settings).unwrap();
        let tree: JsonTree = serde_json::from_str(&json).unwrap();
        assert_eq!(decode(&tree.yaml()), (settings, Vec::new()));
        for empty in ["", "---\n", "current: null\ncontexts: []\n", "contexts:\n"] {
            assert_eq!(decode(empty), (ClientSettings::default(), Vec::new()), "{empty}");
        }
    }

    #[test]
    fn each_fault_has_its_place() {
        for (text, said) in [
            ("contexts: 1\n", "1:11: contexts: must be a list, and is a number"),
            ("[]\n", "1:1: must be a map, and is a list"),
            ("curent: x\n", "1:1: curent: there is no key curent; did you mean current?"),
            (
                "contexts:\n- name: a\n  server: s\n  token: pk_x\n",
                "4:3: contexts[0].token: a token does not stand in this file; write the token to a file \
                 with mode 0600, and name that file in tokenFile",
            ),
            (
                "contexts:\n- name: a\n",
                "2:3: contexts[0].server: is missing; write a line `server: …`",
            ),
            (
                "contexts:\n- {name: a, server: s, tokenFile: f, tokenEnv: E}\n",
                "2:3: contexts[0]: the token comes from several places; keep one of tokenFile, tokenEnv \
                 and tokenCommand",
            ),
            (
                "contexts:\n- {name: a, server: s, clientKey: k}\n",
                "2:3: contexts[0]: clientCertificate and clientKey need each other",
            ),
            (
                "contexts:\n- {name: a, server: s}\n- {name: a, server: t}\n",
                "3:3: contexts[1].name: another context has the name a",
            ),
            ("current: a\n---\ncurrent: b\n", "3:1: one document is read"),
        ] {
            assert_eq!(faults(text), [said], "{text}");
        }
    }

    #[test]
    fn an_unknown_context_leads_to_the_known_ones() {
        let named = |name: &str| ClientContext { name: name.into(), ..ClientContext::default() };
        let settings = |names: &[&str]| ClientSettings {
            contexts: names.iter().map(|name| named(name)).collect(),
            ..ClientSettings::default()
        };
        let help = |names: &[&str], name: &str| {
            let failure = settings(names).find(name).unwrap_err();
            assert_eq!(failure.exit, Exit::NotFound);
            failure.report.help.unwrap()
        };
        assert_eq!(help(&["lab", "prod"], "prd"), "did you mean prod?");
        assert_eq!(help(&["lab", "prod"], "other"), "there are: lab, prod");
        assert!(help(&[], "prod").contains("poolkeeper context set"));
    }
}
