//! What every store must prune in a sweep, and what it must keep.

use super::{Broken, at, commit, leader, pool, same};
use poolkeeper::memory::{
    ANSWER_KEPT, ApiStore, AuditEntry, Claim, Commit, HistoryEvent, HistoryRecord, Keep,
    SWEPT_AT_ONCE, Seq, Store,
};
use poolkeeper::model::hold::HoldReason;
use poolkeeper::model::ids::PoolName;
use poolkeeper::model::time::Span;

/// Seconds.
const DAY: i64 = 86_400;

const KEEP: Keep = Keep { history: Span::days(1), audit: Span::days(2) };

/// Runs the whole suite.
pub async fn check<S: Store + ApiStore>(fresh: impl Fn() -> S) -> Result<(), Broken> {
    history_is_let_go_by_age(&fresh()).await?;
    a_line_of_tomorrow_keeps_those_of_its_pool_alone(&fresh()).await?;
    it_is_done_in_parts(&fresh()).await?;
    the_audit_is_let_go_by_age(&fresh()).await?;
    old_answers_are_pruned_without_a_request(&fresh()).await
}

fn line(seconds: i64) -> HistoryRecord {
    HistoryRecord::new(at(seconds), HistoryEvent::Freed { reason: HoldReason::Floor })
}

async fn tell<S: Store>(store: &S, name: &PoolName, seconds: &[i64]) -> Result<(), Broken> {
    let epoch = leader(store).await?;
    let history = seconds.iter().map(|&n| line(n)).collect();
    Ok(store.commit(&Commit { pool: name.clone(), history, ..commit(epoch, 0) }).await?)
}

async fn kept<S: Store>(store: &S, name: &PoolName) -> Result<Vec<i64>, Broken> {
    let lines = store.history(name, usize::MAX).await?;
    Ok(lines.iter().map(|line| line.at.millis() / 1_000).collect())
}

async fn history_is_let_go_by_age<S: Store + ApiStore>(store: &S) -> Result<(), Broken> {
    let other = PoolName::new("api");
    same("nothing to let go", &store.sweep(&KEEP, at(9 * DAY)).await?.lines, &0)?;
    tell(store, &pool(), &[1, 2, DAY]).await?;
    tell(store, &other, &[2, 3]).await?;
    let swept = store.sweep(&KEEP, at(DAY + 2)).await?;
    same("what is older", &(swept.lines, swept.more), &(1, false))?;
    same("a day is kept to its end", &kept(store, &pool()).await?, &vec![2, DAY])?;
    same("so it is of others", &kept(store, &other).await?, &vec![2, 3])?;
    same("all that is old", &store.sweep(&KEEP, at(2 * DAY)).await?.lines, &3)?;
    same("the rest", &kept(store, &pool()).await?, &vec![DAY])?;
    same("a pool without a past is known", &store.pools().await?, &vec![other.clone(), pool()])?;
    tell(store, &other, &[3 * DAY]).await?;
    let last = store.events_after(Seq::FIRST, 9).await?;
    let rising = last.is_sorted_by(|a, b| a.0 < b.0);
    same("it goes on with higher numbers", &(last.len(), rising), &(2, true))
}

/// A line from a time when the clock was wrong.
async fn a_line_of_tomorrow_keeps_those_of_its_pool_alone<S: Store + ApiStore>(
    store: &S,
) -> Result<(), Broken> {
    let other = PoolName::new("api");
    tell(store, &pool(), &[1, 9 * DAY, 2]).await?;
    tell(store, &other, &[1, 2]).await?;
    store.sweep(&KEEP, at(5 * DAY)).await?;
    same("in the order of writing", &kept(store, &pool()).await?, &vec![9 * DAY, 2])?;
    same("others are free of it", &kept(store, &other).await?, &Vec::new())
}

async fn it_is_done_in_parts<S: Store + ApiStore>(store: &S) -> Result<(), Broken> {
    let many: Vec<i64> = (0..=SWEPT_AT_ONCE as i64).map(|n| n % 9).collect();
    tell(store, &pool(), &many).await?;
    let swept = store.sweep(&KEEP, at(5 * DAY)).await?;
    same("as many as do not hold up others", &swept.lines, &SWEPT_AT_ONCE)?;
    same("there is more", &swept.more, &true)?;
    same("one is left", &kept(store, &pool()).await?.len(), &1)?;
    let mut more = true;
    let mut lines = 0;
    for _ in 0..99 {
        let swept = store.sweep(&KEEP, at(5 * DAY)).await?;
        (lines, more) = (lines + swept.lines, swept.more);
        if !more {
            break;
        }
    }
    same("it comes to an end", &(lines, more), &(1, false))
}

async fn the_audit_is_let_go_by_age<S: Store + ApiStore>(store: &S) -> Result<(), Broken> {
    let audit = |n| AuditEntry {
        at: at(n),
        who: "ann".into(),
        verb: "pause".into(),
        pool: None,
        on: "".into(),
        why: "because".into(),
        came: "accepted".into(),
        consent: None,
    };
    for n in [1, 2, 3] {
        store.audit(&audit(n)).await?;
    }
    let swept = store.sweep(&KEEP, at(2 * DAY + 2)).await?;
    same("what is older", &swept.lines, &1)?;
    same("how many are left", &swept.audit, &2)?;
    let kept = store.audits_after(Seq::FIRST, 9).await?;
    let kept: Vec<AuditEntry> = kept.into_iter().map(|(_, line)| line).collect();
    same("the rest", &kept, &vec![audit(2), audit(3)])
}

async fn old_answers_are_pruned_without_a_request<S: Store + ApiStore>(
    store: &S,
) -> Result<(), Broken> {
    store.claim("old", "r", at(0)).await?;
    store.claim("young", "r", at(1)).await?;
    store.sweep(&KEEP, at(1).plus(ANSWER_KEPT)).await?;
    // At that earlier time, so that the claim itself prunes nothing.
    same("an old one is free", &store.claim("old", "x", at(0)).await?, &Claim::Yours)?;
    same("the others stay", &store.claim("young", "x", at(1)).await?, &Claim::Another)
}
