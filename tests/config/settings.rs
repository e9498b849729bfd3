//! `config/poolkeeper.yaml`.

use poolkeeper::daemon::settings::sections::Section;
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
fn each_entry_in_it_may_be_switched_on_and_explains_every_key() {
    let written = text("poolkeeper.yaml");
    let off = effective(&written).settings();
    assert!(off.metrics.is_empty() && off.endpoints.is_empty() && off.commands.is_empty());
    assert!(off.webhooks.is_empty() && off.clusters.is_empty());
    let on: Vec<(Section, String)> =
        Section::ALL.map(|section| (section, switched_on(section, &written))).to_vec();
    let all: String = on.iter().map(|(_, section)| section.as_str()).collect();
    let settings = effective(&all).settings();
    assert_eq!((settings.metrics.len(), &*settings.metrics[0].name), (1, "main"));
    assert!(settings.endpoints.keys().eq(["shop"].map(Box::<str>::from).iter()));
    assert!(settings.commands.keys().eq(["smoke"].map(Box::<str>::from).iter()));
    assert!(settings.webhooks.keys().eq(["ops"].map(Box::<str>::from).iter()));
    assert!(settings.clusters.keys().eq(["prod"].map(Box::<str>::from).iter()));
    for (section, on) in &on {
        let plain: Vec<&str> = on.lines().map(|line| line.trim_start_matches([' ', '#'])).collect();
        let about = plain.join(" ");
        for key in section.keys() {
            let name = key.name.rsplit('.').next().unwrap();
            assert!(plain.iter().any(|line| line.split(':').next() == Some(name)), "{}", key.name);
            assert!(about.contains(key.about), "{} is explained otherwise", key.name);
        }
    }
    let least = "metrics: {main: {url: 'http://127.0.0.1:9090'}}\n\
                 endpoints: {shop: {url: 'http://127.0.0.1:8080/healthy'}}\n\
                 commands: {smoke: {argv: [/usr/local/bin/smoke, --strict]}}\n\
                 webhooks: {ops: {url: 'https://hooks.example/poolkeeper'}}\n\
                 clusters: {prod: {}}";
    let least = effective(least).settings();
    assert_eq!(settings.metrics, least.metrics, "what is set there is the default");
    assert_eq!(settings.endpoints, least.endpoints, "what is set there is the default");
    assert_eq!(settings.commands, least.commands, "what is set there is the default");
    assert_eq!(settings.webhooks, least.webhooks, "what is set there is the default");
    assert_eq!(settings.clusters, least.clusters, "what is set there is the default");
}

/// A section of the file without the marks of a remark.
fn switched_on(section: Section, written: &str) -> String {
    let start = format!("\n{}:\n", section.name());
    let (_, rest) = written.split_once(&start).unwrap();
    let lines = rest.lines().take_while(|line| line.starts_with("  #"));
    let on = lines.map(|line| match line.trim() {
        "#" => String::new(),
        _ => line.replacen("# ", "", 1),
    });
    format!("{start}{}\n", on.collect::<Vec<_>>().join("\n"))
}
