//! `config/container`: the program in the surroundings that the image gives it, and as the image says it is started.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use poolkeeper::api::client::{Client, ClientToken, DEFAULT_SERVER, Request};
use poolkeeper::api::http::auth::{Role, tokens};
use poolkeeper::daemon::settings::{Sources, keys};

use super::kit::*;
use super::program::Program;
use super::run::{command, finish};
use super::seal::made;

/// Lines of the file, each with those that go on with it.
fn lines() -> Vec<String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("config/container/Containerfile");
    let (mut all, mut open) = (Vec::new(), String::new());
    for line in fs::read_to_string(path).unwrap().lines() {
        let line = if open.is_empty() { line } else { line.trim_start_matches('#').trim_start() };
        match line.strip_suffix('\\') {
            Some(part) => open.push_str(part),
            None => all.push(std::mem::take(&mut open) + line),
        }
    }
    all
}

fn pairs<'a>(words: impl Iterator<Item = &'a str>) -> BTreeMap<String, String> {
    let pairs = words.filter_map(|word| word.split_once('='));
    pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
}

/// What the image sets.
fn set() -> BTreeMap<String, String> {
    let lines = lines();
    let line = lines.iter().find_map(|line| line.strip_prefix("ENV ")).unwrap();
    pairs(line.split_whitespace())
}

/// The command that is written for those who are to be reached from outside.
fn outside() -> String {
    let lines = lines();
    lines.iter().find(|line| line.contains("podman run") && line.contains(" -p ")).unwrap().clone()
}

/// The folders of the container, in a folder of the test's.
fn here(house: &House, variables: BTreeMap<String, String>) -> Vec<(String, String)> {
    let root = house.folder.display().to_string();
    for folder in ["etc/poolkeeper/pools", "etc/poolkeeper/api", "var/lib/poolkeeper"] {
        fs::create_dir_all(house.folder.join(folder)).unwrap();
    }
    let settings = Path::new(env!("CARGO_MANIFEST_DIR")).join("config/poolkeeper.yaml");
    fs::copy(settings, house.folder.join("etc/poolkeeper/poolkeeper.yaml")).unwrap();
    let inside = |value: String| match value.starts_with("/etc/") || value.starts_with("/var/") {
        true => format!("{root}{value}"),
        false => value,
    };
    variables.into_iter().map(|(name, value)| (name, inside(value))).collect()
}

fn borrowed(variables: &[(String, String)]) -> Vec<(&str, &str)> {
    variables.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect()
}

#[test]
fn what_is_copied_is_there_and_is_all_that_is_built_from() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let lines = lines();
    let copied: Vec<&str> = lines
        .iter()
        .filter_map(|line| line.strip_prefix("COPY "))
        .filter(|line| !line.starts_with("--from="))
        .flat_map(|line| line.rsplit_once(' ').unwrap().0.split(' '))
        .collect();
    assert!(copied.iter().all(|name| root.join(name).exists()), "{copied:?}");
    for needed in ["Cargo.toml", "Cargo.lock", "src"] {
        assert!(copied.contains(&needed), "{needed}");
    }
    // The tests stay outside, so the manifest that is built must not name them.
    assert!(!copied.contains(&"tests"), "{copied:?}");
    let build = lines.iter().find(|line| line.contains("cargo build")).unwrap();
    assert!(
        build.contains("sed -i '/^\\[\\[\\(test\\|bench\\)\\]\\]/,/^$/d' Cargo.toml"),
        "{build}"
    );
    let settings = set().remove(keys::FILE).unwrap();
    assert!(lines.contains(&format!("COPY config/poolkeeper.yaml {settings}")));
    assert_eq!(set().get("POOLKEEPER_API_LISTEN"), None);
}

/// As it is: others cannot reach it, and the commands inside need no address and no token.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn as_it_is_the_commands_inside_reach_it() {
    let house = House::new("image-inside", &[("web", 3)]).await;
    let variables = here(&house, set());
    let text = fs::read(house.folder.join("etc/poolkeeper/poolkeeper.yaml")).unwrap();
    let file = Some(("poolkeeper.yaml".to_owned(), text));
    let settled = Sources { file, variables: variables.clone(), ..Sources::default() };
    let listen = settled.settle().unwrap().settings().api.listen.unwrap();
    assert_eq!(format!("http://{listen}"), DEFAULT_SERVER);
    fs::write(house.folder.join("etc/poolkeeper/pools/web.yaml"), pool("web", 3, "1.0.0")).unwrap();
    let mut program = Program::start_in(&house, &borrowed(&variables), &["--listen=127.0.0.1:0"]);
    program.until("ready");
    let mut status = command(&["get"]);
    status.env("POOLKEEPER_SERVER", format!("http://{}", program.address()));
    let status = finish(status, b"");
    assert!(status.code == Some(0) && status.out.contains("web"), "{status:?}");
    program.signal("-TERM");
    let (code, log) = program.end();
    assert_eq!(code, Some(0), "{log}");
    assert!(log.lines().all(|line| line.starts_with('{')), "{log}");
    assert!(house.folder.join("var/lib/poolkeeper/poolkeeper.db").exists());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn from_outside_it_is_reached_with_a_certificate_and_tokens_or_not_at_all() {
    let house = House::new("image-outside", &[]).await;
    let command = outside();
    let given = pairs(command.split(" -e ").skip(1).map(|rest| rest.split(' ').next().unwrap()));
    let listen = &given["POOLKEEPER_API_LISTEN"];
    let port = listen.strip_prefix("0.0.0.0:").unwrap();
    assert!(command.contains(&format!(" -p {port}:{port} ")), "{command}");
    for (_, value) in given.iter().filter(|(_, value)| value.starts_with('/')) {
        let is_mounted = command.contains(" -v ./api:/etc/poolkeeper/api:ro ");
        assert!(is_mounted && value.starts_with("/etc/poolkeeper/api/"), "{value}");
    }
    let mut all = set();
    all.extend(given.clone());
    let variables = here(&house, all);
    let (made, token) = (made(2061), tokens::make("ann", Role::Viewer).unwrap());
    let write = |name: &str, text: &str| {
        let value = &given[name];
        let path = house.folder.join(value.trim_start_matches('/'));
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
    };
    write("POOLKEEPER_API_CERTIFICATE", &made.pem);
    write("POOLKEEPER_API_KEY", &made.key);
    write("POOLKEEPER_API_TOKENS", &token.line);
    let free = ["--listen=0.0.0.0:0"];
    let mut program = Program::start_in(&house, &borrowed(&variables), &free);
    program.until("ready");
    let server = format!("https://localhost:{}", program.address().port());
    let ask = async |token: Option<ClientToken>| {
        let client = Client::new(&server, token, Some(made.pem.as_bytes())).unwrap();
        client.send(&Request::get(&["pools"])).await
    };
    ask(Some(ClientToken::new(&token.token))).await.unwrap();
    assert!(ask(None).await.is_err());
    program.signal("-TERM");
    assert_eq!(program.end().0, Some(0));

    for missing in ["POOLKEEPER_API_TOKENS", "POOLKEEPER_API_CERTIFICATE", "POOLKEEPER_API_KEY"] {
        let rest: Vec<(&str, &str)> =
            borrowed(&variables).into_iter().filter(|(name, _)| *name != missing).collect();
        let (code, log) = Program::start_in(&house, &rest, &free).end();
        assert_eq!(code, Some(2), "{missing}: {log}");
    }
}
