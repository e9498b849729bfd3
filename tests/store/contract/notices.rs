//! Notices for webhooks, and that a pool is frozen: stored with the turn that decided them.

use poolkeeper::memory::{Commit, Store, StoreError};
use poolkeeper::model::ids::{Epoch, PoolName};
use poolkeeper::model::notice::{Delivery, Notice, NoticeDetail, NoticeKind};

use super::{Broken, at, commit, leader, pool, same};

fn delivery(webhook: &str, n: i64) -> Delivery {
    let (id, message) = (format!("web-{n}").into(), "paused".into());
    let (kind, detail) = (NoticeKind::Paused, NoticeDetail::default());
    let notice = Notice { id, kind, at: at(n), rollout: None, message, detail };
    Delivery { webhook: webhook.into(), notice }
}

/// The first notices: pool, webhook, id, and how many wait.
async fn first<S: Store>(store: &S) -> Result<Vec<String>, StoreError> {
    let first = store.first_notices().await?;
    let row = first.iter().map(|of| {
        let Delivery { webhook, notice } = &of.delivery;
        format!("{} {webhook} {} {}", of.pool, notice.id, of.waiting)
    });
    Ok(row.collect())
}

pub async fn wait_until_they_are_settled<S: Store>(store: &S) -> Result<(), Broken> {
    let epoch = leader(store).await?;
    let other = PoolName::new("other");
    let of = |notices| Commit { notices, ..commit(epoch, 1) };
    store.commit(&of(vec![delivery("ops", 1), delivery("log", 1), delivery("ops", 2)])).await?;
    let foreign = Commit::new(other.clone(), epoch, at(2));
    store.commit(&Commit { notices: vec![delivery("ops", 3)], ..foreign }).await?;
    store.commit(&of(vec![delivery("ops", 4)])).await?;
    let late = Commit { notices: vec![delivery("ops", 9)], ..commit(Epoch(epoch.0 + 1), 9) };
    same("a fenced turn tells nothing", &store.commit(&late).await.is_err(), &true)?;
    let lines = |lines: &[&str]| lines.iter().map(ToString::to_string).collect::<Vec<_>>();
    let all = lines(&["web ops web-1 3", "web log web-1 1", "other ops web-3 1"]);
    same("the oldest of each", &first(store).await?, &all)?;
    let found = store.first_notices().await?;
    same("as it was written", &found[0].delivery, &delivery("ops", 1))?;
    store.settle_notice(found[0].seq).await?;
    store.settle_notice(found[0].seq).await?;
    store.settle_notice(found[2].seq).await?;
    let rest = lines(&["web log web-1 1", "web ops web-2 2"]);
    same("then the next", &first(store).await?, &rest)?;
    let last = store.first_notices().await?[1].seq;
    store.forget(&pool(), epoch).await?;
    same("a forgotten pool tells nothing", &first(store).await?, &Vec::new())?;
    store.commit(&of(vec![delivery("ops", 5)])).await?;
    let next = store.first_notices().await?[0].seq;
    same("a number is never given twice", &(next > last), &true)
}

pub async fn a_freeze_lasts<S: Store>(store: &S) -> Result<(), Broken> {
    let epoch = leader(store).await?;
    let frozen =
        |frozen: Option<&str>| Commit { frozen: Some(frozen.map(Into::into)), ..commit(epoch, 1) };
    store.commit(&frozen(Some("invariant 3"))).await?;
    same("it is read", &store.load(&pool()).await?.frozen.as_deref(), &Some("invariant 3"))?;
    store.commit(&commit(epoch, 2)).await?;
    same("it stays", &store.load(&pool()).await?.frozen.as_deref(), &Some("invariant 3"))?;
    store.commit(&frozen(None)).await?;
    same("it ends", &store.load(&pool()).await?.frozen, &None)
}
