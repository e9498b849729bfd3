//! Settings: what is refused, and what holds.

use poolkeeper::daemon::settings::{Sources, keys};

use super::golden_files::golden;

fn file(text: &str) -> Sources {
    Sources {
        file: Some(("poolkeeper.yaml".to_owned(), text.as_bytes().to_vec())),
        ..Sources::default()
    }
}

fn refused(sources: &Sources) -> String {
    let faults = sources.settle().unwrap_err();
    let lines: Vec<String> = faults.iter().map(ToString::to_string).collect();
    lines.join("\n") + "\n"
}

#[test]
fn all_that_is_wrong_is_told_at_once() {
    let mut sources = file(
        "pools: [a, b]\nreload: fast\nlease:\n  tll: 5s\n  ttl: 1s\nturns: 3\nlog: {level: loud, format: jsno}\n\
         logs: {}\nazure:\n  auth: client_secret\n  auth: azure-cli\nstop: {within: 30s}\n",
    );
    sources.variables = vec![
        ("POOLKEEPER_LOGG".to_owned(), "debug".to_owned()),
        ("POOLKEEPER_RELOAD".to_owned(), "0s".to_owned()),
        ("POOLKEEPER_SERVICE_HOST".to_owned(), "10.0.0.1".to_owned()),
        ("POOLKEEPER_PORT_443_TCP".to_owned(), "tcp://10.0.0.1:443".to_owned()),
        ("PATH".to_owned(), "/bin".to_owned()),
    ];
    sources.flags = vec![
        ("set", "turns.atonce".to_owned(), "3".to_owned()),
        ("log", "log.level".to_owned(), "verbose".to_owned()),
        ("set", "api.proxies".to_owned(), "10.0.0.1, 10.0.0.0/33".to_owned()),
    ];
    golden("serve/settings-refused.txt", &refused(&sources));
}

#[test]
fn what_is_no_settings_file_is_told_where() {
    let mut told = String::new();
    for text in [
        "pools: a\n---\npools: b\n",
        "- pools\n",
        "pools: *x\n",
        "pools: {\n",
        "\"pools\": \"a\", \n",
    ] {
        told.push_str(&format!("> {}\n{}", text.replace('\n', "\\n"), refused(&file(text))));
    }
    golden("serve/settings-unread.txt", &told);
}

#[test]
fn the_later_wins_key_by_key_and_says_so() {
    let mut sources =
        file("pools: from-file\nreload: 10s\nturns:\n  atOnce: 4\nazure:\n  tenant: 'null'\n");
    sources.variables = vec![
        ("POOLKEEPER_RELOAD".to_owned(), "20s".to_owned()),
        ("POOLKEEPER_TURNS_AT_ONCE".to_owned(), "5".to_owned()),
        ("AZURE_CLIENT_SECRET".to_owned(), "swordfish".to_owned()),
    ];
    sources.flags = vec![("set", "turns.atOnce".to_owned(), "6".to_owned())];
    let settled = sources.settle().unwrap();
    let (settings, shown) = (settled.settings(), settled.to_yaml());
    assert_eq!((settings.at_once, settings.reload.to_string().as_str()), (6, "20s"));
    golden("serve/settings-shown.txt", &shown);
    assert!(!shown.contains("swordfish"));
    let again = file(&shown).settle().unwrap();
    let values = |settled: &poolkeeper::daemon::settings::Effective| {
        settled
            .values()
            .map(|(key, value)| (key.name, value.map(|(text, _)| text)))
            .collect::<Vec<_>>()
    };
    assert_eq!(values(&again), values(&settled), "what is printed may be used");
}

#[test]
fn nothing_said_is_the_defaults() {
    let settled = Sources::default().settle().unwrap();
    for (key, value) in settled.values() {
        assert_eq!(value.map_or(String::new(), |(text, _)| text), key.default);
    }
    assert_eq!(settled.values().count(), keys::KEYS.len());
}

#[test]
fn no_password_of_a_value_is_shown() {
    let addresses = [
        "http://kim:hunter2@collector.example:4318",
        "kim:hunter2@collector.example:4318",
        "http://kim:hun/hunter2@collector.example/v1?key=hunter2",
        "http://collector.example:4318/?sig=hunter2",
    ];
    for address in addresses {
        let flag = Sources {
            flags: vec![("set", "telemetry.otlp".to_owned(), address.to_owned())],
            ..Sources::default()
        };
        let variables = vec![("POOLKEEPER_OIDC_ISSUER".to_owned(), address.to_owned())];
        let variable = Sources { variables, ..Sources::default() };
        let written = file(&format!("oidc: {{issuer: '{address}'}}\n"));
        for sources in [flag, variable, written] {
            let said = refused(&sources);
            assert!(!said.contains("hunter2") && said.contains("collector.example"), "{said}");
        }
    }
    let shown = file("azure: {resourceManager: 'https://kim:hunter2@arm.example/'}\n");
    let shown = shown.settle().unwrap().to_yaml();
    assert!(!shown.contains("hunter2") && shown.contains("arm.example"), "{shown}");
}
