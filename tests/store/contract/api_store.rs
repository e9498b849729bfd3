//! The contract of every desk: the audit in order, each answer once, documents by revision.

use super::{Broken, at, pool, same};
use poolkeeper::memory::{
    ANSWER_KEPT, ANSWERS_OF_ONE, ApiStore, AuditEntry, Claim, Expected, PutOutcome, Seq,
};
use poolkeeper::model::ids::PoolName;
use poolkeeper::model::time::Time;

/// Runs the whole suite.
pub async fn check<S: ApiStore>(fresh: impl Fn() -> S) -> Result<(), Broken> {
    the_audit_is_kept_in_order(&fresh()).await?;
    a_request_is_done_once(&fresh()).await?;
    answers_are_forgotten_in_time(&fresh()).await?;
    one_who_asks_has_so_many_answers(&fresh()).await?;
    documents_are_replaced_by_revision(&fresh()).await?;
    a_document_that_moved_on_is_left_alone(&fresh()).await
}

fn line(n: i64) -> AuditEntry {
    AuditEntry {
        at: at(n),
        who: "ann".into(),
        verb: "pause".into(),
        pool: (n != 2).then(pool),
        on: format!("machine {n}").into(),
        why: "\"because\" – \u{1f980}\n".into(),
        came: "accepted".into(),
        consent: None,
    }
}

async fn the_audit_is_kept_in_order<S: ApiStore>(store: &S) -> Result<(), Broken> {
    same("an audit begins empty", &store.audits_after(Seq::FIRST, 9).await?, &Vec::new())?;
    let mut all = Vec::new();
    for n in 1..=5 {
        all.push((store.audit(&line(n)).await?, line(n)));
    }
    let rising = all.is_sorted_by(|a, b| a.0 < b.0);
    same("numbers rise", &(rising && all.iter().all(|(seq, _)| *seq > Seq::FIRST)), &true)?;
    let cut = |range: std::ops::Range<usize>| all.get(range).unwrap_or_default().to_vec();
    same("all lines", &store.audits_after(Seq::FIRST, usize::MAX).await?, &cut(0..5))?;
    same("a first page", &store.audits_after(Seq::FIRST, 2).await?, &cut(0..2))?;
    let second = all.get(1).map_or(Seq::LAST, |(seq, _)| *seq);
    same("it goes on", &store.audits_after(second, 2).await?, &cut(2..4))?;
    same("the last page", &store.audits_before(Seq::LAST, 2).await?, &cut(3..5))?;
    same("and what was before", &store.audits_before(second, 9).await?, &cut(0..1))?;
    same("no lines", &store.audits_before(Seq::LAST, 0).await?, &Vec::new())
}

async fn a_request_is_done_once<S: ApiStore>(store: &S) -> Result<(), Broken> {
    same("no one claimed it", &store.answer("k", "no").await?, &false)?;
    same("the first may", &store.claim("k", "pause web", at(1)).await?, &Claim::Yours)?;
    let asked = Claim::Asked { at: at(1) };
    same("the second waits", &store.claim("k", "pause web", at(2)).await?, &asked)?;
    same("another is refused", &store.claim("k", "abort web", at(2)).await?, &Claim::Another)?;
    same("keys are apart", &store.claim("K", "pause web", at(2)).await?, &Claim::Yours)?;
    same("it is answered", &store.answer("k", "{\"ok\":true}").await?, &true)?;
    let answered = Claim::Answered("{\"ok\":true}".into());
    same("again the same", &store.claim("k", "pause web", at(3)).await?, &answered)?;
    same("still refused", &store.claim("k", "abort web", at(3)).await?, &Claim::Another)?;
    store.unclaim("k").await?;
    same("an answer stays", &store.claim("k", "pause web", at(3)).await?, &answered)?;
    store.unclaim("K").await?;
    same("what came to nothing is free", &store.claim("K", "x", at(3)).await?, &Claim::Yours)
}

async fn answers_are_forgotten_in_time<S: ApiStore>(store: &S) -> Result<(), Broken> {
    same("claimed", &store.claim("k", "r", at(0)).await?, &Claim::Yours)?;
    store.answer("k", "done").await?;
    let last = at(0).plus(ANSWER_KEPT);
    let answered = Claim::Answered("done".into());
    same("kept to the last", &store.claim("k", "r", last).await?, &answered)?;
    let later = Time::from_millis(last.millis() + 1);
    same("and no longer", &store.claim("k", "other", later).await?, &Claim::Yours)
}

async fn one_who_asks_has_so_many_answers<S: ApiStore>(store: &S) -> Result<(), Broken> {
    store.claim("bob/0", "r", at(0)).await?;
    store.answer("bob/0", "done").await?;
    same("not answered yet", &store.claim("ann/open", "r", at(0)).await?, &Claim::Yours)?;
    let most = ANSWERS_OF_ONE as i64;
    for n in 1..=most + 1 {
        let key = format!("ann/{n:05}");
        store.claim(&key, "r", at(n)).await?;
        store.answer(&key, "done").await?;
    }
    let (now, answered) = (at(most + 2), Claim::Answered("done".into()));
    same("the second stays", &store.claim("ann/00002", "r", now).await?, &answered)?;
    same("others lose nothing", &store.claim("bob/0", "r", now).await?, &answered)?;
    let open = Claim::Asked { at: at(0) };
    same("what is being done stays", &store.claim("ann/open", "r", now).await?, &open)?;
    same("the oldest is gone", &store.claim("ann/00001", "x", now).await?, &Claim::Yours)
}

async fn documents_are_replaced_by_revision<S: ApiStore>(store: &S) -> Result<(), Broken> {
    same("there is none", &store.document(&pool()).await?, &None)?;
    let mut last = 0;
    for (n, text) in [(1, "one: 1\n"), (2, "one: 1\n"), (3, "two: 2\n")] {
        let found = if last == 0 { Expected::Nothing } else { Expected::Revision(last) };
        match store.put_document(&pool(), text, "ann", at(n), found).await? {
            PutOutcome::Done { revision } if revision > last => last = revision,
            found => same("a higher revision", &found, &PutOutcome::Done { revision: last + 1 })?,
        }
        let kept = store.document(&pool()).await?;
        let kept = kept.map(|d| (d.pool, d.text, d.revision, d.who, d.at));
        let wanted = (pool(), text.into(), last, "ann".into(), at(n));
        same("what was put is there", &kept, &Some(wanted))?;
    }
    let other = PoolName::new("api");
    store.put_document(&other, "three: 3\n", "bob", at(4), Expected::Nothing).await?;
    let names: Vec<PoolName> = store.documents().await?.into_iter().map(|d| d.pool).collect();
    same("all, by name", &names, &vec![other, pool()])
}

async fn a_document_that_moved_on_is_left_alone<S: ApiStore>(store: &S) -> Result<(), Broken> {
    let name = pool();
    let stale = |current| PutOutcome::Stale { current };
    let put = |text, found| store.put_document(&name, text, "ann", at(1), found);
    same("none to replace", &put("a", Expected::Revision(1)).await?, &stale(None))?;
    let removed = store.remove_document(&name, Expected::Revision(1)).await?;
    same("none to remove", &removed, &stale(None))?;
    let PutOutcome::Done { revision: first } = put("a", Expected::Nothing).await? else {
        return same("a new one is put", &false, &true);
    };
    same("one is there", &put("b", Expected::Nothing).await?, &stale(Some(first)))?;
    let PutOutcome::Done { revision: second } = put("b", Expected::Revision(first)).await? else {
        return same("the known one is replaced", &false, &true);
    };
    let old = Expected::Revision(first);
    same("moved on", &put("c", old).await?, &stale(Some(second)))?;
    same("kept", &store.remove_document(&name, old).await?, &stale(Some(second)))?;
    let text = store.document(&name).await?.map(|document| document.text);
    same("unchanged", &text, &Some("b".into()))?;
    let removed = store.remove_document(&name, Expected::Revision(second)).await?;
    same("removed", &removed, &PutOutcome::Done { revision: second })?;
    same("gone", &store.document(&name).await?, &None)?;
    let again = put("a", Expected::Nothing).await?;
    let higher = matches!(again, PutOutcome::Done { revision } if revision > second);
    same("no revision is given twice", &higher, &true)
}
