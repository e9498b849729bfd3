//! Two persons for what cannot be taken back: where `api.approvals` is 2, it is done when two identities asked the same.
//! What the first one asked is remembered by the audit alone, so a restart and a standby know of it.

use super::House;
use super::audited::write_down;
use super::problem::Problem;
use super::view::View;
use super::wishes::ASKED;
use crate::memory::{Audit, Desk, Seq};
use crate::model::time::Span;

/// How the audit calls what the first person asked.
const WAITS: &str = "waits for a second person";
/// The second person asks within this time after the first.
const WITHIN: Span = Span::hours(1);
/// Lines of one read.
const PAGE: usize = 500;

/// What the audit says of the deed, where it may be done; `line` is what is asked.
pub async fn agreed<S: Desk, V: View>(
    house: &House<S, V>,
    line: &Audit,
) -> Result<String, Problem> {
    if house.view.approvals() < 2 {
        return Ok(ASKED.to_owned());
    }
    if let Some(first) = first(house, line).await? {
        return Ok(format!("{ASKED}, as {first} did"));
    }
    let waits = Audit { came: WAITS.into(), ..line.clone() };
    write_down(house, &waits).await.map_err(|error| Problem::store(&error))?;
    let say = format!("it is not done yet: {} waits for a second person", line.verb);
    let until = line.at.plus(WITHIN);
    Err(Problem::conflict("secondPerson", say)
        .help(format!("another person asks the same before {until}; then it is done")))
}

/// Another person who asked the same and waits.
async fn first<S: Desk, V>(house: &House<S, V>, line: &Audit) -> Result<Option<Box<str>>, Problem> {
    let since = line.at.minus(WITHIN);
    let same =
        |known: &Audit| known.verb == line.verb && known.pool == line.pool && known.on == line.on;
    let mut before = Seq::LAST;
    loop {
        let lines = house.store.audits_before(before, PAGE).await;
        let lines = lines.map_err(|error| Problem::store(&error))?;
        let Some((first, _)) = lines.first() else { return Ok(None) };
        before = *first;
        for (_, known) in lines.iter().rev() {
            // What was done after it used it up.
            let is_over = known.at <= since || (same(known) && known.came.starts_with(ASKED));
            if is_over {
                return Ok(None);
            }
            if same(known) && &*known.came == WAITS && known.who != line.who {
                return Ok(Some(known.who.clone()));
            }
        }
    }
}
