//! Who says how many machines a pool has, and what each profile says.

use crate::api::v1::resources::machines::MachineStatus;
use crate::cli::exit::{CommandFailure, Exit};
use crate::cli::output::Shell;
use crate::cli::page::{PoolFacts, TimeStyle};
use crate::cli::table::{Cell, Table, push_line};
use crate::cli::term::Style;
use crate::cli::text::wrap;

/// What stands in place of a machine.
const WORD: &str = "size";

/// The size is asked for, and no machine has that name.
pub(super) fn is_asked(machine: Option<&str>, facts: &PoolFacts<'_>) -> bool {
    machine == Some(WORD) && MachineStatus::find(&facts.machines, WORD).is_none()
}

/// `times`: how the page shows them; none for the document.
pub(super) fn print(
    facts: &PoolFacts<'_>,
    times: Option<TimeStyle>,
    shell: &mut Shell,
) -> Result<(), CommandFailure> {
    let size = &facts.plan.resolved.size;
    let Some(times) = times else {
        let written = serde_json::to_string(size)
            .map_err(|error| CommandFailure::new(Exit::Internal, "internal", error.to_string()))?;
        return shell.line(&written);
    };
    let mut text = String::new();
    let first = format!("The size is {}.", size.decided());
    for line in wrap(&first, shell.term.width) {
        push_line(&mut text, &line);
    }
    if !size.others.is_empty() {
        push_line(&mut text, "");
        let mut table = Table::new(0);
        table.heading(&["PROFILE", "SAYS", "BUT"]);
        for profile in &size.others {
            let says = profile.says.map_or_else(|| "nothing".to_owned(), |says| says.to_string());
            table.row([
                Cell::new(profile.name.clone(), Style::Plain),
                Cell::new(says, Style::Plain),
                Cell::new(times.sentence(&profile.why, facts.at()), Style::Dim),
            ]);
        }
        table.draw(shell.term, &mut text);
    }
    shell.print(&text)
}
