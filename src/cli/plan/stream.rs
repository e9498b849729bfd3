//! Snapshots a line, each answered by a line, with the memory of one.

use crate::api::v1;
use crate::api::v1::snapshot::{MAX_BYTES, Snapshots};
use crate::cli::decide::decide;
use crate::cli::exit::{Exit, Failure};
use crate::cli::shell::Shell;
use crate::cli::source::{Lines, Source};

pub(super) fn answer(source: &Source, shell: &mut Shell) -> Result<Exit, Failure> {
    let mut lines = Lines::new(source.open(shell)?, MAX_BYTES);
    let mut snapshots = Snapshots::default();
    let (mut number, mut worst) = (0_u32, Ended::default());
    loop {
        let line = lines.next().map_err(|error| source.unreadable(&error))?;
        let Some(line) = line else { return Ok(worst.exit()) };
        number = number.saturating_add(1);
        if line.trim_ascii().is_empty() {
            continue;
        }
        match one(line, number, &mut snapshots) {
            Ok((plan, exit)) => {
                worst.note(exit);
                shell.line(&plan)?;
            }
            Err(failure) => {
                worst.note(failure.exit);
                shell.line(&failure.to_json())?;
            }
        }
        shell.flush()?;
    }
}

fn one(line: &[u8], number: u32, snapshots: &mut Snapshots) -> Result<(String, Exit), Failure> {
    let snapshot = snapshots
        .read(line)
        .map_err(|problem| Failure::bad_input(problem.on_line(number), None))?;
    let decision = decide(&snapshot).map_err(|mut failure| {
        failure.told.place = Some((number, 1));
        failure
    })?;
    let exit = decision.exit();
    Ok((v1::plan::encode(&snapshot.input(), &decision.planned), exit))
}

/// What the lines came to.
#[derive(Debug, Default)]
struct Ended {
    internal: bool,
    bad: bool,
    refused: bool,
}

impl Ended {
    fn note(&mut self, exit: Exit) {
        match exit {
            Exit::Internal => self.internal = true,
            Exit::Input => self.bad = true,
            Exit::Refused => self.refused = true,
            _ => {}
        }
    }

    /// A fault of ours weighs more than a bad line, and that more than a law: a bad line was not judged at all.
    const fn exit(&self) -> Exit {
        if self.internal {
            Exit::Internal
        } else if self.bad {
            Exit::Input
        } else if self.refused {
            Exit::Refused
        } else {
            Exit::Done
        }
    }
}
