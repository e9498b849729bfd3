//! `config/poolkeeper.yaml`.

use poolkeeper::daemon::settings::{Effective, Sources, keys};

use super::text;

fn effective(text: &str) -> Effective {
    let file = Some(("poolkeeper.yaml".to_owned(), text.as_bytes().to_vec()));
    Sources { file, ..Sources::default() }.settle().unwrap()
}

fn settle(text: &str) -> Vec<(&'static str, Option<String>)> {
    let settled = effective(text);
    settled.values().map(|(key, value)| (key.name, value.map(|(text, _)| text))).collect()
}

#[test]
fn it_is_the_defaults_and_explains_every_key() {
    let written = text("poolkeeper.yaml");
    assert_eq!(settle(&written), settle(""));
    // Keys that are not set by default stand there too, as remarks.
    for key in keys::KEYS {
        let name = key.name.rsplit('.').next().unwrap();
        let line = written.lines().find(|line| {
            let line = line.trim_start().trim_start_matches("# ");
            line.split(':').next() == Some(name)
        });
        assert!(line.is_some(), "{} is not in it", key.name);
        assert!(written.contains(key.variable), "{} is not in it", key.variable);
        let plain: Vec<&str> =
            written.lines().map(|line| line.trim().trim_start_matches("# ")).collect();
        let about = plain.join(" ");
        assert!(about.contains(key.about), "{} is explained otherwise", key.name);
    }
}

#[test]
fn the_metric_server_in_it_may_be_switched_on_and_explains_every_key() {
    let written = text("poolkeeper.yaml");
    assert!(effective(&written).settings().metrics.is_empty());
    let (before, section) = written.split_once("\nmetrics:\n").unwrap();
    let on = section.lines().map(|line| match line.trim() {
        "#" => String::new(),
        _ => line.replacen("# ", "", 1),
    });
    let section = on.collect::<Vec<_>>().join("\n");
    let settled = effective(&format!("{before}\nmetrics:\n{section}\n"));
    let servers = settled.settings().metrics;
    assert_eq!((servers.len(), &*servers[0].name), (1, "main"));
    let plain: Vec<&str> =
        section.lines().map(|line| line.trim_start_matches([' ', '#'])).collect();
    let about = plain.join(" ");
    for key in keys::SERVER_KEYS {
        let name = key.name.rsplit('.').next().unwrap();
        assert!(plain.iter().any(|line| line.split(':').next() == Some(name)), "{}", key.name);
        assert!(about.contains(key.about), "{} is explained otherwise", key.name);
    }
    let defaults = effective("metrics: {main: {url: 'http://127.0.0.1:9090'}}").settings().metrics;
    assert_eq!(servers, defaults, "what is set there is the default");
}
