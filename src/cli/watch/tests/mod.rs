//! The screen of `watch` without a terminal: pictures as they were agreed to, and what each key does.

#[path = "../../../../tests/support/golden.rs"]
mod golden;

mod events;
mod pictures;
mod presses;
pub mod readme;
mod samples;

use super::session::is_unicode;

#[test]
fn the_first_locale_that_is_set_decides() {
    let of = |all: &str, kind: &str, lang: &str| {
        let values = [("LC_ALL", all), ("LC_CTYPE", kind), ("LANG", lang)];
        is_unicode(|name| {
            let value = values.iter().find(|(known, _)| *known == name)?.1;
            (!value.is_empty()).then(|| value.to_owned())
        })
    };
    assert!(of("", "", "en_US.UTF-8") && of("", "C.utf8", "C") && of("C.UTF-8", "", ""));
    assert!(!of("", "", "") && !of("C", "", "en_US.UTF-8") && !of("POSIX", "C.utf8", ""));
}
