//! Whatever comes in, nothing panics, and what is refused is refused with its place.

use poolkeeper::api::v1::pool::PoolDocuments;
use poolkeeper::api::v1::snapshot::Snapshots;
use proptest::prelude::*;

use crate::api::support::{LEAST, json_pool, snapshot, snapshot_with};

/// Pieces that matter to readers of YAML and JSON.
const PIECES: &[&str] = &[
    ":",
    ": ",
    "- ",
    "\n",
    "\n  ",
    "{",
    "}",
    "[",
    "]",
    ",",
    "\"",
    "'",
    "#",
    "&a",
    "*a",
    "!",
    "!!str ",
    "|",
    ">",
    "|-\n",
    "?",
    "? ",
    "%",
    "%YAML 1.2",
    "@",
    "`",
    "---",
    "---\n",
    "...",
    "...\n",
    "\t",
    "\r",
    "\r\n",
    "\u{feff}",
    "\u{0}",
    "\u{85}",
    "\u{2028}",
    "é",
    "😀",
    "\\",
    "\\u",
    "\\ud83d",
    "\\x",
    "\\N",
    "~",
    "null",
    "true",
    "off",
    "0",
    "-1",
    "1e999",
    "0x",
    "rollout",
    "maxSurge",
    "<<",
    "name",
    "replicas",
    "1000000000000000000000",
];

fn mess() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        4 => prop::sample::select(PIECES).prop_map(str::to_owned),
        1 => any::<char>().prop_map(String::from),
        1 => "[ a-z]{1,8}",
    ];
    prop::collection::vec(piece, 0..40).prop_map(|pieces| pieces.concat())
}

/// A sound text with something cut out of it or put into it.
pub fn mutated(text: String) -> impl Strategy<Value = String> {
    let changes = prop::collection::vec((any::<prop::sample::Index>(), 0_usize..6, mess()), 1..4);
    (Just(text), changes).prop_map(|(text, changes)| {
        changes.into_iter().fold(text, |text, (at, cut, put)| {
            let letters: Vec<char> = text.chars().collect();
            let at = at.index(letters.len().max(1)).min(letters.len());
            let (before, after) = letters.split_at(at);
            let put = put.chars().take(cut * 3);
            before.iter().copied().chain(put).chain(after.iter().skip(cut).copied()).collect()
        })
    })
}

fn check(text: &str) -> Result<(), TestCaseError> {
    let (pools, faults) = PoolDocuments::default().read(text, Some("x.yaml"));
    let lines = text.split(['\n', '\r', '\u{85}', '\u{2028}']).count();
    for fault in &faults {
        prop_assert!(fault.line >= 1 && fault.column >= 1);
        prop_assert!(fault.line as usize <= lines + 1);
        prop_assert!(!fault.message.is_empty());
        prop_assert!(fault.to_string().len() < 2_000, "{}", fault);
    }
    // A document is a pool, or empty, or has its fault named.
    prop_assert!(pools.len() <= text.matches("replicas").count());
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn pool_files_of_any_pieces(text in mess()) {
        check(&text)?;
    }

    #[test]
    fn pool_files_of_any_text(text in any::<String>()) {
        check(&text)?;
    }

    #[test]
    fn pool_files_with_slips(text in mutated(LEAST.to_owned())) {
        check(&text)?;
    }

    #[test]
    fn pool_documents_with_slips(text in mutated(json_pool())) {
        check(&text)?;
    }
}

fn check_snapshot(bytes: &[u8]) -> Result<(), TestCaseError> {
    if let Err(problem) = Snapshots::default().read(bytes) {
        prop_assert!(problem.line >= 1 && problem.column >= 1 && !problem.message.is_empty());
        let json: serde_json::Value = serde_json::from_str(&problem.to_json()).unwrap();
        prop_assert_eq!(&json["kind"], "Error");
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn snapshots_of_any_bytes(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        check_snapshot(&bytes)?;
    }

    #[test]
    fn snapshots_of_any_pieces(text in mess()) {
        check_snapshot(text.as_bytes())?;
    }

    #[test]
    fn snapshots_with_slips(text in mutated(snapshot(2))) {
        check_snapshot(text.as_bytes())?;
    }

    #[test]
    fn snapshots_with_other_values(key in 0_usize..11, value in mess()) {
        let keys = ["now", "seed", "pool", "scaleSet", "machines", "open", "commands", "facts", "state", "kind", "x"];
        let quoted = serde_json::to_string(&value).unwrap();
        check_snapshot(snapshot_with(keys[key], &quoted).as_bytes())?;
        check_snapshot(snapshot_with(keys[key], &value).as_bytes())?;
    }
}
