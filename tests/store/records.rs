//! What is written down is read back whole, and nothing is read that is not understood.

use std::error::Error;

use poolkeeper::memory::record::{self, RecordError, SharedTexts, VERSION};
use poolkeeper::model::rollout::PoolState;
use proptest::prelude::*;

use super::samples;

proptest! {
    #[test]
    fn machines_survive(machine in samples::machine()) {
        let text = record::write_machine(&machine).unwrap();
        let (key, mut shared) = (machine.key(), SharedTexts::default());
        let again = record::read_machine(key.as_str(), &text, &mut shared).unwrap();
        prop_assert_eq!(again, machine, "{}", text);
    }

    #[test]
    fn entries_survive(entry in samples::entry()) {
        let text = record::write_entry(&entry).unwrap();
        prop_assert_eq!(record::read_entry(&text).unwrap(), entry, "{}", text);
    }

    #[test]
    fn lines_survive(line in samples::line()) {
        let text = record::write_line(&line).unwrap();
        prop_assert_eq!(record::read_line(&text).unwrap(), line, "{}", text);
    }

    #[test]
    fn what_people_said_survives(
        ask in samples::ask(), marks in samples::marks(), audit in samples::audit(),
        stop in samples::stop()
    ) {
        let text = record::write_stop(&stop).unwrap();
        prop_assert_eq!(record::read_stop(&text).unwrap(), stop, "{}", text);
        let text = record::write_ask(&ask).unwrap();
        prop_assert_eq!(record::read_ask(&text).unwrap(), ask, "{}", text);
        let text = record::write_marks(&marks).unwrap();
        prop_assert_eq!(record::read_marks(&text).unwrap(), marks, "{}", text);
        let text = record::write_audit(&audit).unwrap();
        prop_assert_eq!(record::read_audit(&text).unwrap(), audit, "{}", text);
    }

    #[test]
    fn machines_out_of_service_survive(out in samples::out_of_service()) {
        let text = record::write_out(&out).unwrap();
        prop_assert_eq!(record::read_out(&text).unwrap(), out, "{}", text);
    }

    #[test]
    fn nothing_makes_a_reader_panic(text in "\\PC{0,40}|[\\[\\]{}\",:0-9a-z]{0,40}") {
        let _ = record::read_machine("k", &text, &mut SharedTexts::default());
        let _ = record::read_entry(&text);
        let _ = record::read_line(&text);
        let _ = record::read_state(&text);
        let _ = record::read_stop(&text);
        let _ = record::read_out(&text);
    }
}

#[test]
fn machines_of_a_pool_share_their_texts() {
    let text = r#"[1,"7",true,0,0,0,true,"ready","v1:aa","2"]"#;
    let mut shared = SharedTexts::default();
    let mut read = |key| record::read_machine(key, text, &mut shared).unwrap();
    let (one, other) = (read("a"), read("b"));
    let place = |name: &str| name.as_ptr();
    let revisions = [&one, &other].map(|m| place(m.revision.as_ref().unwrap().as_str()));
    let zones = [&one, &other].map(|m| place(m.zone.as_ref().unwrap().as_str()));
    assert!(revisions[0] == revisions[1] && zones[0] == zones[1]);
}

#[test]
fn a_newer_version_is_refused_with_advice() {
    let newer = u64::from(VERSION) + 1;
    let said = |error: RecordError| {
        assert!(matches!(error, RecordError::Version { found, .. } if found == newer), "{error:?}");
        assert!(error.to_string().contains("start the newer program"), "{error}");
    };
    // Of the same form, and of one that nobody knows yet.
    let state = record::write_state(&PoolState::default()).unwrap();
    said(record::read_state(&state.replace("\"v\":1", "\"v\":2")).unwrap_err());
    said(record::read_line(r#"{"v":2,"strange":true}"#).unwrap_err());
    said(record::read_entry(r#"{"v":2}"#).unwrap_err());
    let row = r#"[2,"7",true,0,0,0,true,"ready"]"#;
    said(record::read_machine("a", row, &mut SharedTexts::default()).unwrap_err());
    said(record::read_machine("a", "[2]", &mut SharedTexts::default()).unwrap_err());
}

#[test]
fn what_is_damaged_is_refused_with_advice() {
    for text in ["", "{}", r#"{"v":1}"#, r#"{"v":1,"at":0,"told":{"freed":{"reason":"moon"}}}"#] {
        let error = record::read_line(text).unwrap_err();
        assert!(matches!(error, RecordError::Unreadable { .. }) && error.source().is_some());
        assert!(error.to_string().contains("restore it from a backup"), "{error}");
    }
    // More than is known is not read in part.
    let row = r#"[1,"7",true,0,0,0,true,"ready",null,null,null,0,null,null,null,null,null,0,null,null,null,null,5]"#;
    assert!(record::read_machine("a", row, &mut SharedTexts::default()).is_err());
}
