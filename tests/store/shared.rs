//! Two processes on one file: what one records for the turns of the other.

use poolkeeper::adapters::sqlite::{Options, SqliteStore};
use poolkeeper::memory::{InboxStore, OverrideWrite, StoreError, TurnStore};
use poolkeeper::model::ids::{CommandId, PoolName};
use poolkeeper::model::machine::MachineHold;
use poolkeeper::model::plan::{Command, CommandArgs, CommandVerb};
use poolkeeper::model::time::Span;

use super::group::{at, lead, machine, write};
use super::{Folder, wait};

fn ask(id: &str) -> Command {
    let (by, why) = ("ann".into(), "looks".into());
    Command {
        id: CommandId::new(id),
        verb: CommandVerb::Pause,
        by,
        why,
        at: at(1),
        about: CommandArgs::default(),
    }
}

#[test]
fn whoever_leads_hears_once_of_what_others_asked_and_not_of_its_own_writes() {
    let folder = Folder::new();
    let open = |who: &str| {
        let options = Options { alone: false, ..Options::new(folder.file("pools.db"), who) };
        SqliteStore::open(&options).unwrap()
    };
    let (leader, standby) = (open("leader"), open("standby"));
    let (web, api) = (PoolName::new("web"), PoolName::new("api"));
    wait(async {
        let heard = || async { leader.asked_elsewhere().await.unwrap() };
        let epoch = lead(&leader).await.epoch;
        leader.commit(&write("web", epoch, 0..3)).await.unwrap();
        leader.commit(&write("api", epoch, 0..3)).await.unwrap();
        let _from_now_on = heard().await;
        assert_eq!(heard().await, []);
        leader.ask(&web, &ask("own")).await.unwrap();
        assert_eq!(heard().await, [], "its own doors ring by themselves");
        standby.ask(&web, &ask("other")).await.unwrap();
        assert_eq!(heard().await, std::slice::from_ref(&web));
        assert_eq!(heard().await, []);
        let refused = standby.acquire("standby", at(2), Span::hours(1)).await;
        assert!(matches!(refused, Err(StoreError::Held { .. })), "{refused:?}");
        assert_eq!(heard().await, [], "whoever waits for the lease asks nothing");
        let hold = OverrideWrite::Hold(Some(MachineHold { by: "ann".into(), why: "looks".into() }));
        assert!(standby.mark(&api, &machine(1).key(), &hold).await.unwrap());
        let mut both = heard().await;
        both.sort();
        assert_eq!(both, [api, web], "what waits still is named with it");
        assert_eq!(heard().await, []);
    });
}
