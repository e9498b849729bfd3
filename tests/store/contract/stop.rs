//! The stop of all pools: one for all, whatever the turns write.

use poolkeeper::memory::{Commit, Store};
use poolkeeper::model::ids::PoolName;
use poolkeeper::model::rollout::PoolState;
use poolkeeper::model::stop::GlobalStop;

use super::{Broken, at, commit, leader, pool, same};

pub async fn holds_for_every_pool<S: Store>(store: &S) -> Result<(), Broken> {
    let epoch = leader(store).await?;
    let unknown = PoolName::new("a later one");
    let stop =
        GlobalStop { since: at(5), by: "kim".into(), why: "quota".into(), except_repair: false };
    same("at first there is none", &store.stop().await?, &None)?;
    same("to lift none changes nothing", &store.set_stop(None).await?, &false)?;
    store.commit(&commit(epoch, 1)).await?;
    same("it is new", &store.set_stop(Some(&stop)).await?, &true)?;
    for name in [pool(), unknown.clone()] {
        let inbox = store.inbox(&name).await?;
        same("each inbox has it", &inbox.stop.as_ref(), &Some(&stop))?;
        same("and each record", &store.load(&name).await?.inbox, &inbox)?;
    }
    same("it makes no pool", &store.pools().await?.contains(&unknown), &false)?;
    let later = GlobalStop { since: at(9), by: "ann".into(), ..stop.clone() };
    same("the same words change nothing", &store.set_stop(Some(&later)).await?, &false)?;
    same("not even who gave it", &store.stop().await?.as_ref(), &Some(&stop))?;
    let repairs = GlobalStop { except_repair: true, ..later };
    same("other words replace it", &store.set_stop(Some(&repairs)).await?, &true)?;
    let state = Some(PoolState { adopted: Some(at(1)), ..PoolState::default() });
    store.commit(&Commit { state, ..commit(epoch, 2) }).await?;
    store.forget(&pool(), epoch).await?;
    same("no turn lifts it", &store.stop().await?.as_ref(), &Some(&repairs))?;
    same("a person does", &store.set_stop(None).await?, &true)?;
    same("then no inbox has it", &store.inbox(&pool()).await?.stop, &None)
}
