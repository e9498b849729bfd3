//! What people do in a rehearsal, carried out through the doors they would use.

use super::people::Act;
use super::road::{Road, now_or_never};
use super::run::Run;
use super::scenario::{Wish, changed, with_image};
use crate::memory::{Mark, Store};
use crate::model::ids::{AskId, InstanceId, Key};
use crate::model::machine::{DeleteRequest, Machine, MachineHold};
use crate::model::plan::{Ask, AskArgs, AskVerb};
use crate::model::quantity::counted;
use crate::world::{self, Deed, Deletes, Guid, Native, Protection, Which};

impl<R: Road, S: Store + Sync> Run<'_, R, S> {
    /// What is due of what people were going to do.
    pub(super) fn people_act(&mut self) {
        let now = self.now();
        while let Some((_, wish)) = self.wishes.pop_if(|(at, _)| *at <= now) {
            let told = self.wish(wish);
            self.story.tell(now, self.scenario.start, &told);
            self.wake_for_person(now);
        }
    }

    fn wish(&mut self, wish: Wish) -> String {
        match wish {
            Wish::Ask(verb) => self.ask(verb, AskArgs::default()),
            Wish::AskAbout(verb, about) => self.ask(verb, about),
            Wish::Delete { nth, request } => {
                let Some((id, key)) = self.nth(nth) else { return "no such machine".to_owned() };
                self.mark(&key, &Mark::Delete(Some(request)));
                format!("an operator asks for m{id} to go")
            }
            Wish::Undelete { nth } => {
                let Some((id, key)) = self.nth(nth) else { return "no such machine".to_owned() };
                self.mark(&key, &Mark::Delete(None));
                format!("an operator lets m{id} stay")
            }
            Wish::Hold { nth, held } => {
                let Some((id, key)) = self.nth(nth) else { return "no such machine".to_owned() };
                let hold = held.then(|| MachineHold { by: "ann".into(), why: "looks".into() });
                self.mark(&key, &Mark::Hold(hold));
                format!("an operator {} m{id}", if held { "holds" } else { "lets go of" })
            }
            Wish::Count(count) => {
                self.policy = changed(&self.policy, |draft| draft.count = count);
                format!("the pool file says {}", counted(count as usize, "machine"))
            }
            Wish::Image(image) => {
                self.policy = with_image(&self.policy, &image);
                format!("the pool file says image {image}")
            }
            Wish::Windows(windows) => {
                self.policy = changed(&self.policy, |draft| draft.windows = windows);
                "the pool file says other windows".to_owned()
            }
            Wish::Meter(meter) => {
                let told = format!("cores left are told by {meter:?}");
                self.house.facts.meter(meter);
                told
            }
            Wish::Gate(verdict) => {
                self.house.facts.turn_gate(verdict);
                format!("the gates say {}", verdict.name())
            }
            Wish::GateTime(time) => {
                self.house.facts.gate_time(time);
                "the gates measure at another time".to_owned()
            }
            Wish::Upgrade => {
                self.house.stage.lock().scheme += 1;
                let now = self.now();
                self.start_again(now);
                "a newer version of the program starts; it computes fingerprints another way"
                    .to_owned()
            }
            Wish::Cordon { nth } => {
                let Some((id, key)) = self.nth(nth) else { return "no such machine".to_owned() };
                let mut stage = self.house.stage.lock();
                if let (Some(cluster), Ok(vm)) = (&mut stage.cluster, key.as_str().parse::<Guid>())
                {
                    cluster.cordoned_by_others(vm);
                }
                format!("somebody cordons m{id}")
            }
        }
    }

    fn ask(&mut self, verb: AskVerb, about: AskArgs) -> String {
        self.next_ask += 1;
        let what = about.what.map_or(String::new(), |what| format!(" {}", what.name()));
        let number = about.number.map_or(String::new(), |number| format!(" {number}"));
        let told = format!("an operator asks: {}{what}{number}", verb.name());
        let at = self.now();
        let id = AskId::new(format!("ask-{}", self.next_ask));
        let ask = Ask { id, verb, by: "ann".into(), why: "rehearsal".into(), at, about };
        let pool = self.policy.name.clone();
        loop {
            let _answer = now_or_never(self.house.disk.ask(&pool, &ask));
            if !self.is_cut_off() {
                return told;
            }
        }
    }

    fn mark(&mut self, key: &Key, mark: &Mark) {
        let pool = self.policy.name.clone();
        loop {
            let _answer = now_or_never(self.house.disk.mark(&pool, key, mark));
            if !self.is_cut_off() {
                return;
            }
        }
    }

    /// Who was not answered asks again: the process starts anew, and hears it before its first turn.
    fn is_cut_off(&mut self) -> bool {
        let dead = self.house.disk.is_dead();
        if dead {
            self.restart(self.now());
        }
        dead
    }

    /// The machine at this place of the records, round and round.
    fn nth(&self, nth: u32) -> Option<(InstanceId, Key)> {
        // A process that was just started knows none yet; its store does.
        let loaded = now_or_never(self.house.disk.load(&self.policy.name)).ok()?.ok()?;
        let machines = &loaded.machines;
        let at = nth as usize % machines.len().max(1);
        machines.get(at).map(|machine| (machine.id.clone(), machine.key()))
    }

    fn keys(&self, ids: &[InstanceId]) -> Vec<Key> {
        let machines = self.process.remembered().map(|image| &image.machines[..]);
        let all = machines.unwrap_or_default().iter();
        all.filter(|machine| ids.contains(&machine.id)).map(Machine::key).collect()
    }

    /// Do what a hold asked for.
    pub(super) fn do_for_hold(&mut self, act: Act) {
        self.stirred = true;
        let told = match act {
            Act::Ask(verb, about) => self.ask(verb, about),
            Act::Delete(ids) => {
                let request = DeleteRequest { by: "ann".into(), why: "asked".into(), now: false };
                for key in self.keys(&ids) {
                    self.mark(&key, &Mark::Delete(Some(request.clone())));
                }
                format!("the operator marks {} for deletion", counted(ids.len(), "machine"))
            }
            Act::Free(ids) => {
                for key in self.keys(&ids) {
                    self.mark(&key, &Mark::Hold(None));
                }
                let mut stage = self.house.stage.lock();
                let set = stage.set;
                for id in &ids {
                    let which = Which::Id(world::InstanceId::from(id.as_str()));
                    stage.world.happens(set, Deed::Protect(which, Protection::default()));
                }
                stage.hear();
                format!("the operator frees {}", counted(ids.len(), "machine"))
            }
            Act::Lift => {
                let mut stage = self.house.stage.lock();
                let set = stage.set;
                if stage.world.locks(set).delete_only {
                    stage.world.happens(set, Deed::Deletes(Deletes::Allowed));
                }
                stage.world.happens(set, Deed::Lock(false));
                stage.hear();
                "the operator takes the locks off the set".to_owned()
            }
            Act::SwitchOff => {
                let mut stage = self.house.stage.lock();
                let set = stage.set;
                stage.world.happens(set, Deed::SetNative(Native::default()));
                stage.hear();
                "the operator switches the cloud's own features off".to_owned()
            }
        };
        let now = self.now();
        self.story.tell(now, self.scenario.start, &told);
        self.wake_for_person(now);
    }
}
