//! Text for a terminal: wrapping, times relative to now, similar names.

use unicode_width::UnicodeWidthStr;

pub use crate::api::v1::text::{TIE, is_control, list, plain, second, short};
pub use crate::model::quantity::counted as count;
use crate::model::time::Time;

/// The width of a text in columns of a terminal: 2 for most characters of East Asia, 0 for an accent of its own.
pub fn width(text: &str) -> usize {
    text.width()
}

/// The longest beginning of a text that is at most `room` columns wide, and the rest.
fn split(text: &str, room: usize) -> (&str, &str) {
    let ends = text.char_indices().map(|(at, c)| at + c.len_utf8());
    let fits = ends.take_while(|end| width(&text[..*end]) <= room);
    text.split_at(fits.last().unwrap_or(0))
}

/// Wraps a text at spaces into lines of at most `room` columns; splits a word that is longer.
pub fn wrap(text: &str, room: Option<usize>) -> Vec<String> {
    let mut lines = broken(text, room);
    for line in lines.iter_mut().filter(|line| line.contains(TIE)) {
        *line = line.replace(TIE, " ");
    }
    lines
}

fn broken(text: &str, room: Option<usize>) -> Vec<String> {
    let text = plain(text);
    let Some(room) = room.map(|room| room.max(1)) else { return vec![text.into_owned()] };
    let (mut lines, mut line, mut used) = (Vec::new(), String::new(), 0);
    for word in text.split(' ') {
        let mut word = word;
        if used > 0 && used + 1 + width(word) > room {
            lines.push(std::mem::take(&mut line));
            used = 0;
        } else if used > 0 {
            line.push(' ');
            used += 1;
        }
        loop {
            let (head, tail) = match split(word, room) {
                // A character that is wider than the line stands alone.
                ("", _) => word.split_at(word.chars().next().map_or(0, char::len_utf8)),
                fits => fits,
            };
            if tail.is_empty() {
                break;
            }
            lines.push(head.to_owned());
            word = tail;
        }
        line.push_str(word);
        used += width(word);
    }
    lines.push(line);
    lines
}

/// Truncates a text that is too long, and marks the cut with an ellipsis.
pub fn cut(text: &str, room: usize) -> String {
    if width(text) <= room {
        return text.to_owned();
    }
    format!("{}…", split(text, room.saturating_sub(1)).0)
}

/// A time in whole seconds, without its date if `now` has the same date.
pub fn clock(at: Time, now: Time) -> String {
    let (at, now) = (second(at).to_string(), now.to_string());
    match (at.split_once('T'), now.split_once('T')) {
        (Some((date, clock)), Some((today, _))) if date == today => clock.to_owned(),
        _ => at,
    }
}

/// Removes the date of `now` from the timestamps in a text.
pub fn nearer(text: &str, now: Time) -> String {
    let now = now.to_string();
    match now.split_once('T') {
        Some((today, _)) => text.replace(&format!("{today}T"), ""),
        None => text.to_owned(),
    }
}

pub fn alike<'a>(names: &[&'a str], written: &str) -> Vec<&'a str> {
    const MOST: usize = 3;
    let near = crate::api::v1::diagnostic::nearest(written, names);
    let parts = names
        .iter()
        .copied()
        .filter(|name| !written.is_empty() && (name.contains(written) || written.ends_with(name)));
    let mut found: Vec<&str> = near.into_iter().chain(parts).collect();
    let mut seen = Vec::new();
    found.retain(|name| {
        let new = !seen.contains(name);
        seen.push(name);
        new
    });
    found.truncate(MOST);
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::time::Span;

    #[test]
    fn texts_wrap_between_words_and_break_long_ones() {
        assert_eq!(wrap("one two three", Some(7)), ["one two", "three"]);
        assert_eq!(wrap("abcdefgh ij", Some(3)), ["abc", "def", "gh", "ij"]);
        assert_eq!(wrap("one two", None), ["one two"]);
        assert_eq!(wrap("", Some(0)), [""]);
        assert_eq!(wrap("ééé éé", Some(3)), ["ééé", "éé"]);
        assert_eq!(wrap("live 3\u{a0}4", Some(7)), ["live", "3 4"]);
        assert_eq!(wrap("日本語 de\u{301}", Some(5)), ["日本", "語 de\u{301}"]);
        assert_eq!(wrap("日本", Some(1)), ["日", "本"]);
    }

    #[test]
    fn a_wrapped_text_does_not_control_the_terminal() {
        assert_eq!(wrap("a\u{9b}b", None), ["a\u{fffd}b"]);
    }

    #[test]
    fn times_are_short() {
        let now = Time::parse("2026-03-01T12:00:00Z").unwrap();
        assert_eq!(clock(now.plus(Span::seconds(15)), now), "12:00:15Z");
        assert_eq!(clock(now.minus(Span::days(1)), now), "2026-02-28T12:00:00Z");
        assert_eq!(clock(now.plus(Span::from_millis(15_999)), now), "12:00:15Z");
    }

    #[test]
    fn a_cut_is_marked() {
        assert_eq!(cut("abcdef", 4), "abc…");
        assert_eq!(cut("日本語x", 5), "日本…");
    }
}
