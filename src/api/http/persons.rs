//! Two persons for what cannot be taken back: where `api.approvals` is 2, it is done when two identities asked the same.
//! What the first one asked is remembered by the audit alone, so a restart and a standby know of it.

use super::House;
use super::audited::write_down;
use super::problem::Problem;
use super::view::View;
use super::wishes::{ASKED, DELETE_NOW};
use crate::api::v1::resources::When;
use crate::api::v1::resources::pools::AwaitedRequest;
use crate::memory::{Audit, Consent, Desk, Seq, StoreError};
use crate::model::time::Span;

/// How the audit calls what the first person asked.
const WAITS: &str = "waits for a second person";
/// The second person asks within this time after the first.
const WITHIN: Span = Span::hours(1);
/// Lines of one read.
const PAGE: usize = 500;

/// The line of the audit for what is asked, where it may be done now.
pub async fn agreed<S: Desk, V: View>(house: &House<S, V>, asked: Audit) -> Result<Audit, Problem> {
    let given = Audit { came: ASKED.into(), consent: Some(Consent::Given), ..asked };
    if house.view.approvals() < 2 {
        return Ok(given);
    }
    let waits = awaited(house).await.map_err(|error| Problem::store(&error))?;
    let mut others = waits.iter().filter(|known| is_same(known, &given) && known.who != given.who);
    if let Some(first) = others.next() {
        return Ok(Audit { came: format!("{ASKED}, as {} did", first.who).into(), ..given });
    }
    let waits = Audit { came: WAITS.into(), consent: Some(Consent::Awaited), ..given };
    write_down(house, &waits).await.map_err(|error| Problem::store(&error))?;
    let say = format!("it is not done yet: {} waits for a second person", waits.verb);
    let until = waits.at.plus(WITHIN);
    Err(Problem::conflict("secondPerson", say)
        .help(format!("another person asks the same before {until}; then it is done")))
}

/// What waits for a second person, the youngest first.
pub async fn awaited<S: Desk, V: View>(house: &House<S, V>) -> Result<Vec<Audit>, StoreError> {
    let (mut waits, mut given): (Vec<Audit>, Vec<Audit>) = Default::default();
    if house.view.approvals() < 2 {
        return Ok(waits);
    }
    let since = house.view.now().minus(WITHIN);
    let mut before = Seq::LAST;
    loop {
        let lines = house.store.audits_before(before, PAGE).await?;
        let Some((first, _)) = lines.first() else { return Ok(waits) };
        before = *first;
        for (_, line) in lines.into_iter().rev() {
            if line.at <= since {
                return Ok(waits);
            }
            let is_over = given.iter().any(|known| is_same(known, &line));
            let is_again = waits.iter().any(|known| is_same(known, &line) && known.who == line.who);
            match line.consent {
                Some(Consent::Given) => given.push(line),
                Some(Consent::Awaited) if !is_over && !is_again => waits.push(line),
                Some(Consent::Awaited) | None => {}
            }
        }
    }
}

fn is_same(one: &Audit, other: &Audit) -> bool {
    (&one.verb, &one.pool, &one.on) == (&other.verb, &other.pool, &other.on)
}

/// As a pool shows it, with what the second person types.
pub fn shown(line: &Audit) -> AwaitedRequest {
    let pool = line.pool.as_ref().map(ToString::to_string).unwrap_or_default();
    let typed = match &*line.verb {
        DELETE_NOW => format!("delete-machine {pool} {} --now", line.on),
        verb => format!("{verb} {pool}"),
    };
    AwaitedRequest {
        verb: line.verb.to_string(),
        machine: (!line.on.is_empty()).then(|| line.on.to_string()),
        who: line.who.to_string(),
        why: line.why.to_string(),
        at: When(line.at),
        until: When(line.at.plus(WITHIN)),
        command: format!("poolkeeper {typed} --why …"),
    }
}
