//! The page of an explanation.

use super::machine;
use crate::api::v1::resources::pools::Explanation;
use crate::cli::exit::CommandFailure;
use crate::cli::output::Shell;
use crate::cli::page::{PoolFacts, StatusPage, TimeStyle};

/// `history`: rows about the machine, if the explanation is about one.
pub(super) fn print(
    facts: PoolFacts<'_>,
    told: &Explanation,
    history: Vec<(&'static str, String)>,
    times: TimeStyle,
    shell: &mut Shell,
) -> Result<(), CommandFailure> {
    let mut page = StatusPage::of(facts, shell.term, times);
    page.paragraph(&page.said(&told.message));
    page.line("");
    match &told.machine {
        Some(machine) => machine::page(&mut page, told, machine, history),
        None => {
            page.numbers();
            page.actions();
            page.holds(true);
            page.commands();
            page.classes();
        }
    }
    shell.print(&page.text)
}
