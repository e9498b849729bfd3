//! What a command prints through: standard output, buffered, and the way failures are told.

use std::io::{self, BufWriter, Write};

use super::args::Format;
use super::exit::{Exit, Failure};
use super::term::{Style, Term};

/// One write for most pages, several for a plan of a thousand machines.
const BUFFER: usize = 64 << 10;

#[derive(Debug)]
pub struct Shell {
    pub format: Format,
    pub term: Term,
    out: BufWriter<io::Stdout>,
}

impl Shell {
    pub fn new(format: Format, term: Term) -> Self {
        Self { format, term, out: BufWriter::with_capacity(BUFFER, io::stdout()) }
    }

    pub fn print(&mut self, text: &str) -> Result<(), Failure> {
        self.out.write_all(text.as_bytes()).map_err(|error| Failure::unwritable(&error))
    }

    pub fn line(&mut self, text: &str) -> Result<(), Failure> {
        self.print(text)?;
        self.print("\n")
    }

    pub fn flush(&mut self) -> Result<(), Failure> {
        self.out.flush().map_err(|error| Failure::unwritable(&error))
    }

    /// For commands that answer one document.
    pub fn one_document(&self, command: &str) -> Result<bool, Failure> {
        match self.format {
            Format::Table => Ok(false),
            Format::Json => Ok(true),
            Format::Ndjson => {
                let say =
                    format!("{command} does not answer a stream: --output ndjson is for plan");
                Err(Failure::usage(say).help("use --output json or --output table"))
            }
        }
    }

    /// Tells a failure: as the Error document on standard output where JSON is asked for, and in words on standard error.
    pub fn fail(&mut self, failure: &Failure) -> Exit {
        if failure.is_silent() {
            return failure.exit;
        }
        if self.format != Format::Table {
            // The words on standard error are still to come.
            let _ = self.line(&failure.to_json()).and_then(|()| self.flush());
        }
        self.say(Style::Red, "error", &failure.to_string());
        if let Some(help) = &failure.told.help {
            self.say(Style::Cyan, "help", help);
        }
        failure.exit
    }

    /// A line on standard error, for people.
    pub fn say(&self, style: Style, what: &str, text: &str) {
        // Colour there follows that of standard output, so that a page and its errors look alike.
        let what =
            Term { colour: self.term.colour && self.term.watched, ..self.term }.paint(style, what);
        let text = super::text::plain(text);
        // Whoever closed standard error does not want to hear.
        let _ = writeln!(io::stderr().lock(), "{what}: {text}");
    }
}
