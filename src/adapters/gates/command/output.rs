//! What a command prints, and the line of it that people see.

use std::collections::BTreeMap;
use std::ffi::OsString;

use tokio::io::AsyncReadExt;
use tokio::net::unix::pipe::Receiver;

/// How much of the output is kept.
const LARGEST: usize = 64 << 10;
const BUFFER: usize = 64 << 10;
/// Longest line that people see, in characters.
const LONGEST: usize = 200;
/// Shorter values of variables are no secrets, and are in every text by chance.
const SHORTEST_SECRET: usize = 8;

/// Its standard output and standard error, in the order of writing. What is beyond the limit is read and thrown away:
/// the verdict is the exit code, and a talkative command has one too.
#[derive(Debug)]
pub(super) struct Output {
    pipe: Receiver,
    buffer: Box<[u8]>,
    kept: Vec<u8>,
    pub(super) is_open: bool,
}

impl Output {
    pub(super) fn new(pipe: Receiver) -> Self {
        let buffer = vec![0; BUFFER].into();
        Self { pipe, buffer, kept: Vec::new(), is_open: true }
    }

    /// Reads a part. It may be dropped without a loss.
    pub(super) async fn read(&mut self) {
        match self.pipe.read(&mut self.buffer).await {
            Ok(0) | Err(_) => self.is_open = false,
            Ok(length) => self.keep(length),
        }
    }

    /// Reads what is in the pipe now. A process that left its group may still write, so it reads no more than it keeps.
    pub(super) fn drain(&mut self) {
        while self.kept.len() < LARGEST {
            // Not `try_read`, which reports nothing until the runtime has polled the pipe.
            match rustix::io::read(&self.pipe, &mut *self.buffer) {
                Ok(0) => break,
                Ok(length) => self.keep(length),
                Err(rustix::io::Errno::INTR) => {}
                Err(_) => break,
            }
        }
    }

    fn keep(&mut self, length: usize) {
        let room = LARGEST - self.kept.len();
        self.kept.extend(self.buffer.iter().take(length.min(room)));
    }

    /// Its first line that is not blank, as plain text. `hidden` are variables of the command: their values are
    /// replaced by their names.
    pub(super) fn first_line(&self, hidden: &BTreeMap<Box<str>, OsString>) -> Option<String> {
        first_line(&self.kept, hidden)
    }
}

fn first_line(output: &[u8], hidden: &BTreeMap<Box<str>, OsString>) -> Option<String> {
    let mut text = plain(&String::from_utf8_lossy(output));
    let mut values: Vec<(String, &str)> = Vec::new();
    for (name, value) in hidden {
        let value = value.to_string_lossy();
        let lines = value.lines().map(str::trim).filter(|line| line.len() >= SHORTEST_SECRET);
        values.extend(lines.map(|line| (line.to_owned(), &**name)));
    }
    // Longer ones first: one value may be a part of another.
    values.sort_by_key(|(value, _)| std::cmp::Reverse(value.len()));
    for (value, name) in values {
        text = text.replace(&value, &format!("${name}"));
    }
    let line = text.lines().map(str::trim).find(|line| !line.is_empty())?;
    Some(line.chars().take(LONGEST).collect())
}

/// Without escape sequences, control characters and marks that change the writing direction. A carriage return ends a
/// line.
pub(super) fn plain(text: &str) -> String {
    let mut left = text.chars().peekable();
    let mut plain = String::with_capacity(text.len());
    while let Some(c) = left.next() {
        match c {
            '\u{1b}' => match left.next_if(|c| !matches!(c, '\n' | '\r')) {
                Some('[') => skip_sequence(&mut left),
                Some(']' | 'P' | 'X' | '^' | '_') => skip_string(&mut left),
                Some(' '..='/') => skip_sequence(&mut left),
                _ => {}
            },
            '\u{9b}' => skip_sequence(&mut left),
            '\n' | '\r' => plain.push('\n'),
            '\t' => plain.push(' '),
            '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => {}
            c if c.is_control() => {}
            c => plain.push(c),
        }
    }
    plain
}

type Characters<'a> = std::iter::Peekable<std::str::Chars<'a>>;

/// Parameters, then the character that ends it: `31m` of a colour.
fn skip_sequence(left: &mut Characters<'_>) {
    while left.next_if(|c| matches!(c, ' '..='?')).is_some() {}
    left.next_if(|c| matches!(c, '@'..='~'));
}

/// Up to its terminator: the title of a window. One without it ends with the line.
fn skip_string(left: &mut Characters<'_>) {
    while let Some(c) = left.next_if(|c| !matches!(c, '\n' | '\r')) {
        match c {
            '\u{7}' | '\u{9c}' => return,
            '\u{1b}' => {
                left.next_if_eq(&'\\');
                return;
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_for_people_is_plain_and_short() {
        for (output, line) in [
            ("", None),
            (" \n\r\n\t", None),
            ("\n  the second  \nthird", Some("the second")),
            ("\u{1b}[1;31mred\u{1b}[0m alert\u{7}", Some("red alert")),
            ("\u{1b}]0;a title\u{7}text", Some("text")),
            ("\u{1b}]8;;https://a.example\u{1b}\\link\u{1b}]8;;\u{1b}\\", Some("link")),
            ("\u{1b}]0;no end\nnext", Some("next")),
            ("\u{1b}(Bset\u{1b}c \u{9b}2Jc1", Some("set c1")),
            ("\u{1b}\nnext", Some("next")),
            ("\u{1b}[", None),
            ("50 %\r100 %", Some("50 %")),
            ("a\tb\u{0}c\u{202e}d", Some("a bcd")),
        ] {
            assert_eq!(
                first_line(output.as_bytes(), &BTreeMap::new()).as_deref(),
                line,
                "{output:?}"
            );
        }
        assert_eq!(first_line(b"\xff", &BTreeMap::new()).as_deref(), Some("\u{fffd}"));
        let long = "ä".repeat(500);
        assert_eq!(first_line(long.as_bytes(), &BTreeMap::new()), Some("ä".repeat(200)));
    }

    #[test]
    fn a_value_of_a_variable_is_not_shown() {
        let of = |name: &str, value: &str| (name.into(), value.into());
        let hidden = BTreeMap::from([
            of("KEY", "hunter2-hunter2"),
            of("BOTH", "key hunter2-hunter2"),
            of("PEM", "BEGIN KEY\nMIIEvQIBADAN\n"),
            of("SHORT", "1"),
        ]);
        for (output, line) in [
            ("key: hunter2-hunter2, 1 time", "key: $KEY, 1 time"),
            ("key hunter2-hunter2", "$BOTH"),
            ("key MIIEvQIBADAN is bad", "key $PEM is bad"),
            ("\u{1b}[1mhunter2\u{1b}[0m-hunter2", "$KEY"),
        ] {
            assert_eq!(first_line(output.as_bytes(), &hidden).as_deref(), Some(line));
        }
        // Before the line is shortened: no half of it is left.
        let late = format!("{}hunter2-hunter2", "x".repeat(195));
        let line = first_line(late.as_bytes(), &hidden).unwrap();
        assert!(line.ends_with("x$KEY"), "{line}");
    }
}
