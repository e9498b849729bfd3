//! Which room may name which crate from outside the house.

use crate::lex::{Kind, tokens};
use crate::manifest::Dependency;
use crate::tree::{Source, Violation};

enum Where {
    Anywhere,
    /// Only tests and benches: it must be a dev-dependency, and the compiler sees to the rest.
    Tests,
    Rooms(&'static [&'static str]),
}

/// Formats live at the edges, so the core cannot read or write any; a client crate has one home.
const CRATES: &[(&str, Where)] = &[
    ("thiserror", Where::Anywhere),
    ("async_trait", Where::Rooms(AZURE)),
    ("azure_core", Where::Rooms(AZURE)),
    ("azure_identity", Where::Rooms(AZURE)),
    // Tokens, keys and signed assertions.
    ("base64", Where::Rooms(&["adapters::azure", "api", "emulator"])),
    ("bytes", Where::Rooms(AZURE)),
    // The last fuse before Azure, the rate of calls to a cluster, and the limiter of the API's clients.
    ("governor", Where::Rooms(&["ambient", "adapters::azure", "adapters::kubernetes", "api"])),
    // What is kept of Azure's answers.
    ("moka", Where::Rooms(&["adapters::azure"])),
    // Clients: of Azure, of an identity provider, of a collector of traces, of a metric server, and of our own API
    // (`api::client`), which no room on the cloud's side may see. All are built in `net`.
    (
        "reqwest",
        Where::Rooms(&[
            "net",
            "adapters::azure",
            "adapters::issuer",
            "adapters::otlp",
            "adapters::prometheus",
            "api",
        ]),
    ),
    // Dates in headers of answers.
    ("httpdate", Where::Rooms(&["net", "adapters::azure"])),
    // The client of clusters, and the bodies that it takes.
    ("kube", Where::Rooms(KUBERNETES)),
    ("http_body_util", Where::Rooms(KUBERNETES)),
    // Its types are named nowhere: it is here to choose the oldest version, which the client asks of a program.
    ("k8s_openapi", Where::Rooms(KUBERNETES)),
    // The server of the API: its own accept loop, for limits that the framework's has not.
    // Its requests are those that the client of clusters sends.
    ("hyper", Where::Rooms(&["adapters::kubernetes", "api", "net"])),
    ("hyper_util", Where::Rooms(&["api"])),
    ("tower_service", Where::Rooms(&["api"])),
    // Signatures of tokens and of deliveries, tokens themselves at the door, and the hashes of the audit.
    ("ring", Where::Rooms(&["adapters::azure", "adapters::hooks", "adapters::sqlite", "api"])),
    // `net` configures TLS; the others read certificates and the causes of failures.
    ("rustls", Where::Rooms(&["net", "adapters::azure", "api", "emulator"])),
    (
        "tokio",
        Where::Rooms(&[
            "ambient",
            "net",
            "adapters::azure",
            "adapters::gates",
            "adapters::hooks",
            "adapters::issuer",
            "adapters::kubernetes",
            "adapters::prometheus",
            "adapters::sqlite",
            "api",
            "daemon",
            "emulator",
            "cli",
        ]),
    ),
    ("tracing", Where::Rooms(&["adapters::azure", "daemon", "telemetry"])),
    // How logs are written has one home.
    ("tracing_subscriber", Where::Rooms(&["telemetry"])),
    ("rusqlite", Where::Rooms(&["adapters::sqlite"])),
    // What the system grants this process, and signals to others, without unsafe code.
    ("rustix", Where::Rooms(&["adapters::gates", "daemon", "cli"])),
    // The screen of `watch`.
    ("ratatui", Where::Rooms(&["cli"])),
    // Settings are addresses too, and a request or a form has a query.
    ("percent_encoding", Where::Rooms(&["emulator"])),
    (
        "url",
        Where::Rooms(&[
            "net",
            "adapters::azure",
            "adapters::gates",
            "adapters::hooks",
            "adapters::issuer",
            "adapters::kubernetes",
            "adapters::otlp",
            "adapters::prometheus",
            "api",
            "daemon",
            "emulator",
        ]),
    ),
    // The nearest name to a mistyped one.
    ("strsim", Where::Rooms(&["model", "api"])),
    ("jiff", Where::Rooms(&["model", "ambient", "emulator", "world"])),
    ("serde", Where::Rooms(FORMATS)),
    ("serde_json", Where::Rooms(FORMATS)),
    ("serde_path_to_error", Where::Rooms(&["api", "cli"])),
    ("saphyr_parser", Where::Rooms(&["api"])),
    // Faults of pool files with their line, and the width of characters.
    ("annotate_snippets", Where::Rooms(&["cli"])),
    ("unicode_width", Where::Rooms(&["cli"])),
    ("clap", Where::Rooms(&["cli", "main"])),
    ("clap_complete", Where::Rooms(&["cli", "main"])),
    // Manual pages from the table of commands.
    ("clap_mangen", Where::Rooms(&["cli"])),
    ("terminal_size", Where::Rooms(&["cli"])),
    // Two servers: the one for programs, and the made-up Azure, which hands out tokens to anybody.
    ("axum", Where::Rooms(&["api", "emulator"])),
    // The adapter reads many VMs of a Flexible set at once, and never more than a few.
    ("futures_util", Where::Rooms(&["adapters::azure", "api", "daemon", "drain", "emulator"])),
    ("rcgen", Where::Rooms(&["emulator"])),
    ("tokio_rustls", Where::Rooms(&["net", "emulator"])),
    ("criterion", Where::Tests),
    // The judge of our cron.
    ("croner", Where::Tests),
    ("peak_alloc", Where::Tests),
    ("proptest", Where::Tests),
];

/// The edges at which a format is read or written.
const FORMATS: &[&str] = &[
    "api",
    "memory",
    "cli",
    "adapters::azure",
    "adapters::hooks",
    "adapters::issuer",
    "adapters::kubernetes",
    "adapters::otlp",
    "adapters::prometheus",
    "emulator",
];

/// Whoever talks to ARM.
const AZURE: &[&str] = &["adapters::azure"];

/// The room that talks to a cluster.
const KUBERNETES: &[&str] = &["adapters::kubernetes"];

const RULE: &str = "outside crates";
const TABLE: &str = "CRATES in tests/tidy/outside.rs";

/// Every crate that `Cargo.toml` names is in the table, and test crates stay out of the product.
pub fn check_manifest(manifest: &Source, dependencies: &[Dependency]) -> Vec<Violation> {
    let mut broken = Vec::new();
    for Dependency { name, dev, line } in dependencies {
        let say = match CRATES.iter().find(|(known, _)| known == name) {
            None => format!(
                "crate `{name}` is unknown: add it to {TABLE} with the rooms that may name it"
            ),
            Some((_, Where::Tests)) if !dev => {
                format!("`{name}` is for tests only: move it to [dev-dependencies]")
            }
            Some(_) => continue,
        };
        broken.push(manifest.breaks(*line, RULE, say));
    }
    broken
}

/// Every path in a source file that begins with the name of an outside crate.
pub fn check(source: &Source) -> Vec<Violation> {
    let room = source.room();
    let words = tokens(&source.text);
    let mut broken = Vec::new();
    for (at, token) in words.iter().enumerate().filter(|(_, t)| t.kind == Kind::Word) {
        let before = |n: usize| at.checked_sub(n).and_then(|i| words.get(i));
        let is = |n: usize, text: &str| before(n).is_some_and(|t| t.is(text));
        let opens_a_path = words.get(at + 1).is_some_and(|t| t.is("::"));
        // `::serde::x` begins with an outside crate; `a::serde::x` and `>::serde` do not.
        let inner = is(1, "::") && before(2).is_some_and(|t| t.kind == Kind::Word || t.is(">"));
        let imported = is(1, "use") || (is(1, "crate") && is(2, "extern"));
        if (!opens_a_path && !imported) || (inner && !is(2, "use")) {
            continue;
        }
        let Some((name, Where::Rooms(rooms))) = CRATES.iter().find(|(name, _)| *name == token.text)
        else {
            continue;
        };
        if !rooms.contains(&room.as_str()) {
            let say = format!(
                "`{room}` may not name `{name}`, which belongs to: {}. Convert at that edge; to move the wall \
                 itself change {TABLE}",
                rooms.join(", "),
            );
            broken.push(source.breaks(token.line, RULE, say));
        }
    }
    broken
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::manifest::dependencies;

    fn said(path: &str, text: &str) -> usize {
        check(&Source::new(path, text)).len()
    }

    #[test]
    fn a_crate_in_the_wrong_room_is_caught() {
        for text in [
            "use serde::Deserialize;",
            "use serde;",
            "use serde as s;",
            "use ::serde::{Serialize};",
            "extern crate serde;",
            "#[derive(Debug, serde::Serialize)] struct A;",
            "fn f(t: &dyn serde::Serializer) {}",
            "#[cfg(test)] mod tests { use serde::Deserialize; }",
            "fn f() { jiff::Timestamp::now() }",
        ] {
            let expected = usize::from(!text.contains("jiff"));
            assert_eq!(said("src/model/pool.rs", text), expected, "{text}");
            assert_eq!(said("src/plan/mod.rs", text), 1, "{text}");
        }
        assert_eq!(said("src/api/v1/mod.rs", "use clap::Parser; fn f(d: jiff::Span) {}"), 2);
    }

    #[test]
    fn what_is_allowed_or_not_that_crate_passes() {
        for (path, text) in [
            ("src/api/v1/mod.rs", "use serde::Serialize; use saphyr_parser::Event;"),
            ("src/cli/mod.rs", "use clap::Parser; use serde_json::json;"),
            ("src/main.rs", "use clap::Parser;"),
            ("src/plan/mod.rs", "#[derive(thiserror::Error)] enum E {}"),
            (
                "src/plan/mod.rs",
                "// serde::x\nfn f(s: &str) { let serde = \"serde::x\"; m::serde::x() }",
            ),
        ] {
            assert_eq!(said(path, text), 0, "{text}");
        }
    }

    #[test]
    fn the_manifest_names_only_known_crates() {
        let text = "[dependencies]\nserde = \"1\"\nproptest = \"1\"\nleft-pad = \"1\"\n[dev-dependencies]\ncriterion = \"1\"";
        let manifest = Source::new("Cargo.toml", text);
        let broken = check_manifest(&manifest, &dependencies(&manifest));
        assert_eq!(broken.iter().map(|v| v.line).collect::<Vec<_>>(), [3, 4]);
        assert!(broken[1].say.contains("`left_pad` is unknown"), "{broken:?}");
    }
}
