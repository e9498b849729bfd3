//! Reads one snapshot per line and answers each with one line, in the memory of a single snapshot.

use crate::api::v1;
use crate::api::v1::snapshot::{MAX_BYTES, Snapshots};
use crate::cli::decide::decide;
use crate::cli::exit::{CommandFailure, Exit};
use crate::cli::output::Shell;
use crate::cli::source::{Lines, SnapshotSource};

pub(super) fn answer(source: &SnapshotSource, shell: &mut Shell) -> Result<Exit, CommandFailure> {
    let mut lines = Lines::new(source.open(shell)?, MAX_BYTES);
    let mut snapshots = Snapshots::default();
    let (mut number, mut worst) = (0_u32, StreamFailures::default());
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

fn one(
    line: &[u8],
    number: u32,
    snapshots: &mut Snapshots,
) -> Result<(String, Exit), CommandFailure> {
    let snapshot = snapshots
        .read(line)
        .map_err(|problem| CommandFailure::bad_input(problem.on_line(number), None))?;
    let decision = decide(&snapshot).map_err(|mut failure| {
        failure.report.place = Some((number, 1));
        failure
    })?;
    let exit = decision.exit();
    Ok((v1::plan::encode(&snapshot.input(), &decision.planned), exit))
}

/// The kinds of failures among the lines.
#[derive(Debug, Default)]
struct StreamFailures {
    internal: bool,
    bad: bool,
    refused: bool,
}

impl StreamFailures {
    fn note(&mut self, exit: Exit) {
        match exit {
            Exit::Internal => self.internal = true,
            Exit::Input => self.bad = true,
            Exit::Refused => self.refused = true,
            _ => {}
        }
    }

    /// An internal error outweighs a bad line. A bad line outweighs a broken invariant: it was not judged at all.
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
