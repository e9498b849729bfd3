//! Settings: what is refused, and what holds.

use poolkeeper::adapters::kubernetes::ClusterConfig;
use poolkeeper::daemon::settings::{Sources, keys};
use poolkeeper::model::time::Span;

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

fn servers(text: &str) -> Sources {
    file(&format!("metrics:\n{text}"))
}

#[test]
fn metric_servers_have_names_and_their_own_keys() {
    let mut sources = servers(
        "  main: {url: 'https://prometheus.example/base', bearerTokenFile: token, timeout: 5s}\n  \
         eu: {url: 'http://127.0.0.1:9090', basicAuth: {username: kim, passwordFile: password}, tenant: eu}\n",
    );
    sources.flags = vec![
        ("set", "metrics.main.interval".to_owned(), "30s".to_owned()),
        ("set", "metrics.new.url".to_owned(), "http://localhost:9090/".to_owned()),
    ];
    let settled = sources.settle().unwrap();
    let found = settled.settings().metrics;
    let short: Vec<(&str, &str, String)> = found
        .iter()
        .map(|of| {
            (
                &*of.name,
                of.server.access.at.as_str(),
                format!("{} {}", of.interval, of.server.timeout),
            )
        })
        .collect();
    let expected = [
        ("eu", "http://127.0.0.1:9090/api/v1/query", "15s 10s"),
        ("main", "https://prometheus.example/base/api/v1/query", "30s 5s"),
        ("new", "http://localhost:9090/api/v1/query", "15s 10s"),
    ];
    assert_eq!(short, expected.map(|(name, at, times)| (name, at, times.to_owned())));
    let shown = settled.to_yaml();
    let section = shown.split_once("\nmetrics:\n").unwrap().1;
    for line in [
        "  eu:\n    url: 'http://127.0.0.1:9090'",
        "    basicAuth:\n      username: kim",
        "      passwordFile: password",
        "    interval: 30s                        # --set",
        "    # bearerTokenFile:                   # not set",
    ] {
        assert!(section.contains(line), "{line}: {section}");
    }
    assert_eq!(
        file(&shown).settle().unwrap().settings().metrics,
        found,
        "what is printed may be used"
    );
}

#[test]
fn what_is_wrong_with_metric_servers_is_told_at_once() {
    let mut sources = servers(
        "  main: {url: 127.0.0.1:9090, interval: 90s, tokenFile: t, basicAuth: {user: kim}}\n  \
         a b: {url: 'http://127.0.0.1:9090'}\n  \
         open: {url: 'http://prometheus.example', bearerTokenFile: t, basicAuth: {username: kim}, key: k.pem}\n  \
         none:\n  \
         azure: {url: 'http://workspace.example', azureIdentity: true, bearerTokenFile: t}\n",
    );
    sources.flags = vec![
        ("set", "metrics.main.urls".to_owned(), "http://127.0.0.1".to_owned()),
        ("set", "metrics.main".to_owned(), "http://127.0.0.1".to_owned()),
    ];
    let said = refused(&sources);
    for line in [
        "poolkeeper.yaml:2:15: metrics.main.url: 127.0.0.1:9090: must be an address",
        "metrics.main.interval: 90s: must be from 1s to 1m",
        "metrics.main.tokenFile: there is no key tokenFile",
        "metrics.main.basicAuth.user: there is no key user; allowed: username, passwordFile",
        "metrics: a b is no name of a metric server",
        "poolkeeper.yaml:4:3: metrics.open.bearerTokenFile: a token and a password are both set",
        "metrics.open.basicAuth.passwordFile: it is needed with basicAuth.username",
        "metrics.open.certificate: it is needed with key",
        "metrics.open.url: credentials are sent only over https://",
        "poolkeeper.yaml:5:3: metrics.none.url: url is missing",
        "metrics.azure.azureIdentity: it gets a token of the identity, and another credential is set",
        "metrics.azure.url: credentials are sent only over https://",
        "--set: there is no key metrics.main.urls; did you mean url?",
        "--set: there is no key metrics.main;",
    ] {
        assert!(said.contains(line), "{line}: {said}");
    }
    assert_eq!(said.matches("metrics.main.url:").count(), 1, "a wrong one is not missing: {said}");
    let secret = servers("  main: {url: 'http://kim:hunter2@127.0.0.1:9090'}\n");
    assert!(!refused(&secret).contains("hunter2"));
}

#[test]
fn endpoints_and_commands_have_names_and_are_shown_as_they_may_be_written() {
    let mut sources = file(
        "gates: {commandsAtOnce: 2}\n\
         endpoints:\n  \
         shop: {url: 'https://shop.example/healthy', bearerTokenFile: token, caFile: ca.pem}\n  \
         db: {url: 'http://127.0.0.1:8080'}\n\
         commands:\n  \
         smoke: {argv: [/bin/smoke, -n, 5, true, \"it's\", ''], environment: {PORT: 8080, NAME: 'null'}, inherit: [PATH]}\n",
    );
    sources.flags = vec![
        ("set", "endpoints.db.basicAuth.username".to_owned(), "kim".to_owned()),
        ("set", "endpoints.db.basicAuth.passwordFile".to_owned(), "password".to_owned()),
        ("set", "commands.new.argv".to_owned(), "[/bin/new, 'a: b']".to_owned()),
        ("set", "commands.smoke.inherit".to_owned(), "[PATH, HOME]".to_owned()),
    ];
    let settled = sources.settle().unwrap();
    let found = settled.settings();
    assert_eq!(found.commands_at_once, 2);
    let addresses: Vec<(&str, &str)> =
        found.endpoints.iter().map(|(name, of)| (&**name, of.at.as_str())).collect();
    assert_eq!(
        addresses,
        [("db", "http://127.0.0.1:8080/"), ("shop", "https://shop.example/healthy")]
    );
    let (smoke, new) = (&found.commands["smoke"], &found.commands["new"]);
    assert_eq!(smoke.argv, ["/bin/smoke", "-n", "5", "true", "it's", ""].map(Box::from));
    let environment = [("NAME", "null"), ("PORT", "8080")];
    let environment = environment.map(|(name, value)| (name.into(), value.into()));
    assert_eq!(smoke.environment, environment.into());
    assert_eq!(smoke.inherit, ["PATH", "HOME"].map(Box::from));
    assert_eq!(new.argv, ["/bin/new", "a: b"].map(Box::from));
    let shown = settled.to_yaml();
    for line in [
        "endpoints:\n  db:\n    url: 'http://127.0.0.1:8080'",
        "commands:\n  new:\n    argv: ['/bin/new', 'a: b']",
        "    argv: ['/bin/smoke', '-n', '5', 'true', 'it''s', ''] # poolkeeper.yaml:6:17",
        "    environment: {NAME: 'null', PORT: '8080'} # poolkeeper.yaml:6:",
        "    inherit: ['PATH', 'HOME']            # --set",
    ] {
        assert!(shown.contains(line), "{line}: {shown}");
    }
    let again = file(&shown).settle().unwrap().settings();
    assert_eq!(again.endpoints, found.endpoints, "what is printed may be used");
    assert_eq!(again.commands, found.commands, "what is printed may be used");
    let secret = "commands: {a: {argv: [/bin/a, 'http://kim:hunter2@a.example/?b'], environment: {U: 'http://kim:hunter2@b.example'}}}";
    let shown = file(secret).settle().unwrap().to_yaml();
    assert!(!shown.contains("hunter2") && shown.contains("…@a.example/?…']"), "{shown}");
    assert!(shown.contains("{U: 'http://…@b.example'}"), "{shown}");
}

#[test]
fn what_is_wrong_with_endpoints_and_commands_is_told_at_once() {
    let mut sources = file(
        "gates: {commandsAtOnce: 0}\n\
         endpoints:\n  \
         shop: {url: 'http://shop.example/a?b', timeout: 5s, tenant: eu}\n  \
         open: {url: 'http://shop.example', bearerTokenFile: t, certificate: c.pem}\n  \
         a b: {}\n  \
         none:\n\
         commands:\n  \
         text: {argv: /bin/check --fast}\n  \
         empty: {argv: []}\n  \
         relative: {argv: [check.sh, /bin/x]}\n  \
         blank: {argv: ['']}\n  \
         odd: {argv: [/bin/x, {a: b}, null, \"a\\nb\"], args: []}\n  \
         none: {inherit: [PATH]}\n  \
         names: {argv: [/bin/x], environment: {A: 1, 2B: x, AZURE_CLIENT_SECRET: x, A: 2}, inherit: [C, D=1, C, POOLKEEPER_TOKEN]}\n  \
         both: {argv: [/bin/x], environment: {A: 1}, inherit: [B, A]}\n  \
         kinds: {argv: {a: b}, environment: [A], inherit: PATH}\n  \
         text: {argv: [/bin/x]}\n",
    );
    sources.flags = vec![
        ("set", "commands.flag.argv".to_owned(), "/bin/x".to_owned()),
        ("set", "commands.two.argv".to_owned(), "[x, \"\\n\"]".to_owned()),
        ("set", "commands.cut.argv".to_owned(), "[/bin/x".to_owned()),
        ("set", "commands.flag.arg".to_owned(), "[/bin/x]".to_owned()),
    ];
    golden("serve/settings-named-refused.txt", &refused(&sources));
    let secret = file("commands: {a: {argv: [/bin/a, \"http://kim:hunter2@a.example/\\n\"]}}\n");
    assert!(!refused(&secret).contains("hunter2"));
}

#[test]
fn webhooks_are_shown_without_what_may_be_a_secret() {
    let sources = file(
        "webhooks:\n  \
         ops: {url: 'https://hooks.example/T0/KEY?sig=KEY', secretFile: key, timeout: 5s}\n  \
         chat:\n    \
         url: http://127.0.0.1:8080/KEY\n    \
         private: true\n    \
         template: |\n      \
         {\"text\":\n       \"{{pool}}: {{message}}\"}\n",
    );
    let settled = sources.settle().unwrap();
    let found = settled.settings();
    let (ops, chat) = (&found.webhooks["ops"], &found.webhooks["chat"]);
    assert_eq!(ops.access.at.as_str(), "https://hooks.example/T0/KEY?sig=KEY");
    assert_eq!((ops.secret.as_deref(), ops.private), (Some("key".as_ref()), false));
    assert_eq!((ops.timeout, chat.timeout), (Span::seconds(5), Span::seconds(10)));
    assert!(ops.template.is_none() && chat.template.is_some() && chat.private);
    assert_eq!(found.outside_names().webhooks.len(), 2);
    let shown = settled.to_yaml();
    assert!(!shown.contains("KEY"), "{shown}");
    for line in [
        "webhooks:\n  chat:\n    url: 'http://127.0.0.1:8080/…'",
        "    url: 'https://hooks.example/…'",
        "    template: '{\"text\":\"{{pool}}: {{message}}\"}' # poolkeeper.yaml:7:7",
    ] {
        assert!(shown.contains(line), "{line}: {shown}");
    }
}

#[test]
fn what_is_wrong_with_webhooks_is_told_at_once() {
    let mut sources = file(
        "webhooks:\n  \
         meta: {url: 'http://169.254.169.254/metadata'}\n  \
         here: {url: 'http://localhost:8080/x'}\n  \
         open: {url: 'http://hooks.example/x', secretFile: key, bearerTokenFile: t}\n  \
         none: {private: maybe}\n  \
         odd: {url: 'ftp://hooks.example/KEY', interval: 5s, timeout: 2m}\n  \
         text: {url: 'https://hooks.example/x', template: '{{pool}}'}\n  \
         name: {url: 'https://hooks.example/x', template: '{\"text\": \"{{pol}}\"}'}\n",
    );
    sources.flags = vec![("set", "webhooks.ops.url".to_owned(), "hooks.example/KEY".to_owned())];
    let said = refused(&sources);
    assert!(!said.contains("KEY"), "{said}");
    golden("serve/settings-webhooks-refused.txt", &said);
}

#[test]
fn clusters_have_names_and_are_shown_as_they_may_be_written() {
    let mut sources = file(
        "clusters:\n  \
         prod: {kubeconfig: /etc/poolkeeper/prod.kubeconfig, context: 'admin@prod'}\n  \
         trial: {kubeconfig: trial.kubeconfig}\n  \
         home:\n",
    );
    sources.flags = vec![("set", "clusters.trial.context".to_owned(), "kind-trial".to_owned())];
    let settled = sources.settle().unwrap();
    let found = settled.settings();
    let cluster = |file: Option<&str>, context: Option<&str>| ClusterConfig {
        kubeconfig: file.map(Into::into),
        context: context.map(Into::into),
    };
    let wanted = [
        ("home", cluster(None, None)),
        ("prod", cluster(Some("/etc/poolkeeper/prod.kubeconfig"), Some("admin@prod"))),
        ("trial", cluster(Some("trial.kubeconfig"), Some("kind-trial"))),
    ];
    assert!(found.clusters.iter().map(|(name, of)| (&**name, of.clone())).eq(wanted));
    let names = found.outside_names().clusters;
    assert_eq!(*names, ["home", "prod", "trial"].map(Box::from));
    let shown = settled.to_yaml();
    for line in [
        "clusters:\n  home:\n    # kubeconfig:",
        "    kubeconfig: /etc/poolkeeper/prod.kubeconfig # poolkeeper.yaml:2:",
        "    context: kind-trial                  # --set",
    ] {
        assert!(shown.contains(line), "{line}: {shown}");
    }
    let again = file(&shown).settle().unwrap().settings();
    assert_eq!(again.clusters, found.clusters, "what is printed may be used");
}

#[test]
fn what_is_wrong_with_clusters_is_told_at_once() {
    let mut sources = file(
        "clusters:\n  \
         prod: {kubeconfig: '', server: 'https://127.0.0.1:6443'}\n  \
         home: {context: prod}\n  \
         wrong: {kubeconfig: ' ', context: prod}\n  \
         list: {kubeconfig: [a, b]}\n  \
         text: prod.kubeconfig\n  \
         a.b: {}\n",
    );
    sources.flags = vec![
        ("set", "clusters.prod.kubeconfg".to_owned(), "a".to_owned()),
        ("set", "cluster.prod.kubeconfig".to_owned(), "a".to_owned()),
    ];
    golden("serve/settings-clusters-refused.txt", &refused(&sources));
}
