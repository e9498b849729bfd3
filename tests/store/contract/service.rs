//! Machines out of service at their load balancers: what we put Down is never forgotten before it is put back.

use poolkeeper::memory::{Commit, Store, StoreError};
use poolkeeper::model::backend::{OutOfService, PutDown, ServiceStep};
use poolkeeper::model::ids::{BackendPoolId, EntryId, Epoch, PoolName};
use poolkeeper::model::journal::EntryEvent;

use super::{Broken, at, commit, leader, machine, moved, pool, same};

fn out(n: u32, step: ServiceStep) -> OutOfService {
    let (pool, name) = (BackendPoolId::new(format!("/a/pool{n}")), format!("web_{n}").into());
    let put = vec![PutDown { pool, name, at: at(5), answered: false, lost: None, tries: 1 }];
    OutOfService { step, put, ..OutOfService::of(&machine(n), at(4)) }
}

pub async fn stays_until_it_is_replaced<S: Store>(store: &S) -> Result<(), Broken> {
    let epoch = leader(store).await?;
    let other = PoolName::new("other");
    let write = |out| Commit { out: Some(out), ..commit(epoch, 1) };
    // In no order of their own.
    let first = vec![
        out(3, ServiceStep::Leaving),
        out(1, ServiceStep::Grace { since: at(6) }),
        out(2, ServiceStep::Returning),
    ];
    store.commit(&write(first.clone())).await?;
    let foreign = vec![out(3, ServiceStep::Out)];
    let of_other = Commit::new(other.clone(), epoch, at(1));
    store.commit(&Commit { out: Some(foreign.clone()), ..of_other }).await?;
    same("rows are read as they were written", &store.load(&pool()).await?.out, &first)?;
    let quiet = Commit { machines: vec![machine(1)], ..commit(epoch, 2) };
    store.commit(&quiet).await?;
    same("a commit without rows keeps them", &store.load(&pool()).await?.out, &first)?;
    store.commit(&Commit { closed: vec![machine(1).key()], ..commit(epoch, 3) }).await?;
    same("a closed machine keeps its row", &store.load(&pool()).await?.out, &first)?;
    let second = vec![out(2, ServiceStep::Out)];
    store.commit(&write(second.clone())).await?;
    same("all rows are replaced", &store.load(&pool()).await?.out, &second)?;
    store.commit(&write(Vec::new())).await?;
    same("none are left", &store.load(&pool()).await?.out, &Vec::new())?;
    store.commit(&write(second)).await?;
    store.forget(&pool(), epoch).await?;
    store.commit(&commit(epoch, 4)).await?;
    same("a forgotten pool has no rows", &store.load(&pool()).await?.out, &Vec::new())?;
    same("pools are apart", &store.load(&other).await?.out, &foreign)
}

pub async fn is_whole_or_nothing<S: Store>(store: &S) -> Result<(), Broken> {
    let epoch = leader(store).await?;
    let before = vec![out(1, ServiceStep::Leaving)];
    store.commit(&Commit { out: Some(before.clone()), ..commit(epoch, 1) }).await?;
    let late = Commit { out: Some(Vec::new()), ..commit(Epoch(epoch.0 + 1), 2) };
    let fenced = Err(StoreError::Fenced { current: epoch });
    same("a fenced turn changes no row", &store.commit(&late).await, &fenced)?;
    same("they are as they were", &store.load(&pool()).await?.out, &before)?;
    let unknown = Commit {
        out: Some(Vec::new()),
        moved: vec![moved("no", EntryEvent::Asking, 2)],
        ..commit(epoch, 2)
    };
    let refused = Err(StoreError::UnknownEntry(EntryId::new("no")));
    same("a refused turn changes none", &store.commit(&unknown).await, &refused)?;
    same("they are still as they were", &store.load(&pool()).await?.out, &before)
}
