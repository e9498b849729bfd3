//! How a command prints: buffered standard output, and the reporting of failures.

use std::io::{self, BufWriter, Write};

use clap::ValueEnum;

use super::exit::{CommandFailure, Exit};
use super::term::{Style, Term};

/// Large enough for most pages in one write; a plan of a thousand machines takes several.
const BUFFER: usize = 64 << 10;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum OutputFormat {
    /// Text for people; colour only on a terminal
    #[default]
    Table,
    /// One JSON document; errors are JSON too
    Json,
    /// One JSON document per line, for commands that return a stream
    Ndjson,
}

#[derive(Debug)]
pub struct Shell {
    pub format: OutputFormat,
    pub term: Term,
    out: BufWriter<io::Stdout>,
}

impl Shell {
    pub fn new(format: OutputFormat, term: Term) -> Self {
        Self { format, term, out: BufWriter::with_capacity(BUFFER, io::stdout()) }
    }

    pub fn print(&mut self, text: &str) -> Result<(), CommandFailure> {
        self.out.write_all(text.as_bytes()).map_err(|error| CommandFailure::unwritable(&error))
    }

    pub fn line(&mut self, text: &str) -> Result<(), CommandFailure> {
        self.print(text)?;
        self.print("\n")
    }

    pub fn flush(&mut self) -> Result<(), CommandFailure> {
        self.out.flush().map_err(|error| CommandFailure::unwritable(&error))
    }

    /// Whether to print JSON, for commands that answer one document.
    pub fn one_document(&self, command: &str) -> Result<bool, CommandFailure> {
        match self.format {
            OutputFormat::Table => Ok(false),
            OutputFormat::Json => Ok(true),
            OutputFormat::Ndjson => {
                let say =
                    format!("{command} does not answer a stream: --output ndjson is for plan");
                Err(CommandFailure::usage(say).help("use --output json or --output table"))
            }
        }
    }

    /// Reports a failure in words on standard error; with a JSON format, also as an Error document on standard output.
    pub fn fail(&mut self, failure: &CommandFailure) -> Exit {
        if failure.is_silent() {
            return failure.exit;
        }
        if self.format != OutputFormat::Table {
            // If this fails, the words on standard error below still report the failure.
            let _ = self.line(&failure.to_json()).and_then(|()| self.flush());
        }
        self.say(Style::Red, "error", &failure.to_string());
        if let Some(help) = &failure.report.help {
            self.say(Style::Cyan, "help", help);
        }
        failure.exit
    }

    /// Prints a line for people on standard error.
    pub fn say(&self, style: Style, what: &str, text: &str) {
        // Colour on standard error follows standard output, so that a page and its errors look alike.
        let what =
            Term { colour: self.term.colour && self.term.watched, ..self.term }.paint(style, what);
        let text = super::text::plain(text);
        // If standard error is closed, drop the line.
        let _ = writeln!(io::stderr().lock(), "{what}: {text}");
    }
}
