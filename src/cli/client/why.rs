//! The reason for a change.

use std::io::{self, BufRead, IsTerminal, Write};

use clap::Args;
use clap::builder::NonEmptyStringValueParser;

use super::Server;
use super::environment::set;
use crate::cli::exit::CommandFailure;
use crate::cli::text::plain;

/// From the option, else from the environment; else a person at a terminal is asked.
#[derive(Debug, Args)]
pub(super) struct Why {
    /// Reason for the request, or POOLKEEPER_WHY; recorded with the name of the caller. On a terminal you are asked
    #[arg(long, value_name = "TEXT", value_parser = NonEmptyStringValueParser::new())]
    why: Option<String>,
}

impl Why {
    /// The reason, unless only a person could still give one.
    pub fn written(&self) -> Option<String> {
        self.why.clone().or_else(|| set("POOLKEEPER_WHY"))
    }

    /// The reason for a change on this server.
    pub fn given(&self, server: &Server) -> Result<String, CommandFailure> {
        match self.written() {
            Some(why) => Ok(why),
            None if io::stdin().is_terminal() && io::stderr().is_terminal() => {
                asked(server.context_name().as_deref())
            }
            None => Err(CommandFailure::usage("the reason is missing")
                .help("add --why TEXT, or set POOLKEEPER_WHY")),
        }
    }
}

/// The question names the context: a person sees which servers the change is for.
fn question(context: Option<&str>) -> String {
    context.map_or_else(|| "Why? ".to_owned(), |name| format!("{}: why? ", plain(name)))
}

fn asked(context: Option<&str>) -> Result<String, CommandFailure> {
    // If the question cannot be shown, the answer is blank, and the error below says what to do.
    let _ =
        io::stderr().write_all(question(context).as_bytes()).and_then(|()| io::stderr().flush());
    let mut line = String::new();
    let read = io::stdin().lock().read_line(&mut line);
    read.map_err(|error| CommandFailure::unreadable("the terminal", &error))?;
    match line.trim() {
        "" => Err(CommandFailure::usage("no reason was given, and nothing was requested")),
        why => Ok(why.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_question_names_the_context() {
        assert_eq!(question(None), "Why? ");
        assert_eq!(question(Some("prod\u{1b}")), "prod\u{fffd}: why? ");
    }
}
