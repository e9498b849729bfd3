//! `config/poolkeeper.yaml`.

use poolkeeper::daemon::settings::{Sources, keys};

use super::text;

fn settle(text: &str) -> Vec<(&'static str, Option<String>)> {
    let file = Some(("poolkeeper.yaml".to_owned(), text.as_bytes().to_vec()));
    let settled = Sources { file, ..Sources::default() }.settle().unwrap();
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
