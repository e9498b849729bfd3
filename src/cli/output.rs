//! How a command prints: buffered standard output, and the reporting of failures.

use std::io::{self, BufWriter, Write};

use clap::ValueEnum;

use super::exit::{CommandFailure, ErrorReport, Exit};
use super::table::Table;
use super::term::{Style, Term};
use super::text::plain;
use super::validate::snippet;
use super::yaml::JsonTree;
use crate::api::v1::diagnostic::{Code, Diagnostic, TextPlace};

/// Large enough for most pages in one write; a plan of a thousand machines takes several.
const BUFFER: usize = 64 << 10;

/// The values of `--output`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum OutputOption {
    /// Text for people; colour only on a terminal
    #[default]
    Table,
    /// Like table, with more columns; for lists of `get`
    Wide,
    /// One name per line, such as pool/web; for lists of `get`
    Name,
    /// The JSON document as YAML
    Yaml,
    /// One JSON document; an error is a JSON document too, on standard output and nowhere else
    Json,
    /// One JSON document per line, for commands that return a stream
    Ndjson,
}

/// What a command prints.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OutputFormat {
    /// Text for people.
    #[default]
    Table,
    /// One JSON document; the shell may write it as YAML.
    Json,
    /// One JSON document per line.
    Ndjson,
}

/// How a list is printed for people.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ListStyle {
    #[default]
    Table,
    Wide,
    Name,
}

impl OutputOption {
    /// Whether it prints only lists.
    pub const fn is_of_lists(self) -> bool {
        matches!(self, OutputOption::Wide | OutputOption::Name)
    }

    /// The failure of a command that prints no list.
    pub fn no_list(self) -> CommandFailure {
        let name = if self == OutputOption::Name { "name" } else { "wide" };
        let say = format!("--output {name} is for lists of `get`");
        CommandFailure::usage(say).help("use --output table, --output json or --output yaml")
    }
}

impl From<OutputOption> for OutputFormat {
    fn from(option: OutputOption) -> Self {
        match option {
            OutputOption::Table | OutputOption::Wide | OutputOption::Name => OutputFormat::Table,
            OutputOption::Yaml | OutputOption::Json => OutputFormat::Json,
            OutputOption::Ndjson => OutputFormat::Ndjson,
        }
    }
}

#[derive(Debug)]
pub struct Shell {
    pub format: OutputFormat,
    pub list: ListStyle,
    pub term: Term,
    /// Documents are written as YAML.
    yaml: bool,
    documents: usize,
    out: BufWriter<io::Stdout>,
}

impl Shell {
    pub fn new(format: OutputFormat, term: Term) -> Self {
        let out = BufWriter::with_capacity(BUFFER, io::stdout());
        Self { format, list: ListStyle::Table, term, yaml: false, documents: 0, out }
    }

    pub fn of(option: OutputOption, term: Term) -> Self {
        let list = match option {
            OutputOption::Wide => ListStyle::Wide,
            OutputOption::Name => ListStyle::Name,
            _ => ListStyle::Table,
        };
        let yaml = option == OutputOption::Yaml;
        Self { list, yaml, ..Self::new(option.into(), term) }
    }

    pub fn print(&mut self, text: &str) -> Result<(), CommandFailure> {
        self.out.write_all(text.as_bytes()).map_err(|error| CommandFailure::unwritable(&error))
    }

    /// Prints a table. No width: its lines do not wrap.
    pub fn table(&mut self, table: &Table, width: Option<usize>) -> Result<(), CommandFailure> {
        let mut page = String::new();
        table.draw(Term { width, ..self.term }, &mut page);
        self.print(&page)
    }

    /// Prints a line. With `--output yaml` each line is a JSON document, which is written as YAML.
    pub fn line(&mut self, text: &str) -> Result<(), CommandFailure> {
        if let Some(tree) = self.yaml.then(|| serde_json::from_str::<JsonTree>(text).ok()).flatten()
        {
            return self.document(&tree);
        }
        self.print(text)?;
        self.print("\n")
    }

    /// Prints a document as YAML.
    pub fn document(&mut self, tree: &JsonTree) -> Result<(), CommandFailure> {
        if self.documents > 0 {
            self.print("---\n")?;
        }
        self.documents += 1;
        self.print(&tree.yaml())
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
                    format!("{command} answers one document, and --output ndjson is for streams");
                Err(CommandFailure::usage(say)
                    .help("use --output json, --output yaml or --output table"))
            }
        }
    }

    /// Reports a failure once: with a JSON format as an Error document on standard output, else in words on standard
    /// error.
    pub fn fail(&mut self, failure: &CommandFailure) -> Exit {
        if failure.is_silent() {
            return failure.exit;
        }
        let is_json = self.format != OutputFormat::Table && !self.yaml;
        if is_json && self.line(&failure.to_json()).and_then(|()| self.flush()).is_ok() {
            return failure.exit;
        }
        if let Some(drawn) = self.drawn(&failure.report) {
            // If standard error is closed, drop the lines.
            let _ = writeln!(io::stderr().lock(), "{drawn}");
            return failure.exit;
        }
        self.say(Style::Red, "error", &failure.to_string());
        if let Some(help) = &failure.report.help {
            self.say(Style::Cyan, "help", help);
        }
        failure.exit
    }

    /// A fault with its line and a caret, if the report has the text.
    fn drawn(&self, report: &ErrorReport) -> Option<String> {
        let (text, (line, column)) = (report.text.as_ref()?, report.place?);
        let mut fault = Diagnostic::new(
            TextPlace { line, column },
            report.field.as_str(),
            Code::Syntax,
            report.message.as_str(),
        );
        fault.help.clone_from(&report.help);
        let name = plain(report.file.as_deref().unwrap_or_default());
        let term = Term { colour: self.term.colour && self.term.watched, ..self.term };
        Some(snippet::draw(&fault, &name, &snippet::lines(text), term))
    }

    /// Prints a line for people on standard error.
    pub fn say(&self, style: Style, what: &str, text: &str) {
        // Colour on standard error follows standard output, so that a page and its errors look alike.
        let what =
            Term { colour: self.term.colour && self.term.watched, ..self.term }.paint(style, what);
        let text = plain(text);
        // If standard error is closed, drop the line.
        let _ = writeln!(io::stderr().lock(), "{what}: {text}");
    }
}
