//! What people do in a rehearsal, through the same interfaces that they would use.

use super::operators::Act;
use super::run::Run;
use super::scenario::{QuotaSource, UserAction, changed, with_image};
use super::size_profiles::{say_count, say_share};
use super::transport::{Road, now_or_never};
use crate::memory::{InboxStore, OverrideWrite, TurnStore};
use crate::model::ids::{CommandId, InstanceId, Key};
use crate::model::machine::{DeleteRequest, Machine, MachineHold};
use crate::model::plan::{Command, CommandArgs, CommandVerb};
use crate::model::quantity::counted;
use crate::model::stop::GlobalStop;
use crate::model::time::Span;
use crate::world::{self, Deletes, ExternalEvent, Guid, InstanceProtection, PlatformSpec, Which};

impl<R: Road, S: TurnStore + InboxStore + Sync> Run<'_, R, S> {
    /// Carries out every user action that is due.
    pub(super) fn people_act(&mut self) {
        let now = self.now();
        while let Some((_, wish)) = self.wishes.pop_if(|(at, _)| *at <= now) {
            let told = self.wish(wish);
            self.story.tell(now, self.scenario.start, &told);
            self.wake_for_person(now);
        }
    }

    fn wish(&mut self, wish: UserAction) -> String {
        match wish {
            UserAction::Ask(verb) => self.ask(verb, CommandArgs::default()),
            UserAction::AskAbout(verb, about) => self.ask(verb, about),
            UserAction::Scale { to, lasts, places } => self.scale(to, lasts, &places),
            UserAction::Delete { nth, request } => {
                let Some((id, key)) = self.nth(nth) else { return "no such machine".to_owned() };
                self.mark(&key, &OverrideWrite::Delete(Some(request)));
                format!("an operator marks m{id} for deletion")
            }
            UserAction::Undelete { nth } => {
                let Some((id, key)) = self.nth(nth) else { return "no such machine".to_owned() };
                self.mark(&key, &OverrideWrite::Delete(None));
                format!("an operator lets m{id} stay")
            }
            UserAction::Hold { nth, held } => {
                let Some((id, key)) = self.nth(nth) else { return "no such machine".to_owned() };
                let hold = held.then(|| MachineHold { by: "ann".into(), why: "looks".into() });
                self.mark(&key, &OverrideWrite::Hold(hold));
                format!("an operator {} m{id}", if held { "holds" } else { "lets go of" })
            }
            UserAction::Count(count) => {
                self.policy = changed(&self.policy, |draft| say_count(draft, count));
                format!("the pool file says {}", counted(count as usize, "machine"))
            }
            UserAction::Image(image) => {
                self.policy = with_image(&self.policy, &image);
                format!("the pool file says image {image}")
            }
            UserAction::Windows(windows) => {
                self.policy = changed(&self.policy, |draft| draft.windows = windows);
                "the pool file says other windows".to_owned()
            }
            UserAction::Meter(meter) => self.meter(meter),
            UserAction::Gate(verdict) => {
                self.ports.facts.turn_gate(verdict);
                format!("the gates say {}", verdict.name())
            }
            UserAction::GateTime(time) => {
                self.ports.facts.gate_time(time);
                "the gates measure at another time".to_owned()
            }
            UserAction::Metric(value) => self.metric(value),
            UserAction::OtherPool(available) => self.other_pool(available),
            UserAction::Share(percent) => {
                self.policy = changed(&self.policy, |draft| say_share(draft, percent));
                format!("the pool file says {percent} % of the other pool")
            }
            UserAction::Upgrade => {
                self.ports.stage.lock().scheme += 1;
                let now = self.now();
                self.start_again(now);
                "a newer version of the program starts; it computes fingerprints another way"
                    .to_owned()
            }
            UserAction::StopAll { except_repair } => self.stop_all(except_repair),
            UserAction::ResumeAll => self.resume_all(),
            UserAction::Cordon { nth } => {
                let Some((id, key)) = self.nth(nth) else { return "no such machine".to_owned() };
                let mut stage = self.ports.stage.lock();
                let now = stage.world.now();
                if let (Some(cluster), Ok(vm)) = (&mut stage.cluster, key.as_str().parse::<Guid>())
                {
                    cluster.cordoned_by_others(vm, now);
                }
                format!("another person cordons m{id}")
            }
        }
    }

    fn meter(&mut self, meter: QuotaSource) -> String {
        self.ports.facts.meter(meter);
        match meter {
            QuotaSource::Missing => "free cores are no longer reported".to_owned(),
            QuotaSource::Cloud { .. } => "Azure reports the free cores".to_owned(),
            QuotaSource::Says(cores) => format!("{cores} free cores are reported"),
        }
    }

    fn metric(&mut self, value: Option<u32>) -> String {
        self.ports.facts.metric(value);
        match value {
            Some(value) => format!("the metric says {value}"),
            None => "the metric has no value".to_owned(),
        }
    }

    fn other_pool(&mut self, available: Option<u32>) -> String {
        self.ports.facts.other_pool(available);
        match available {
            Some(n) => format!("{} available in the other pool", counted(n as usize, "machine")),
            None => "nothing is known of the other pool".to_owned(),
        }
    }

    fn scale(&mut self, to: u32, lasts: Option<Span>, places: &[u32]) -> String {
        let named = places.iter().filter_map(|nth| self.nth(*nth));
        let machines = named.map(|(id, _)| id).collect();
        let until = lasts.map(|lasts| self.now().plus(lasts));
        let about = CommandArgs { number: Some(to), until, machines, ..CommandArgs::default() };
        let told = self.ask(CommandVerb::Scale, about);
        if lasts.is_none() && !self.policy.has_profiles() {
            self.policy = changed(&self.policy, |draft| draft.count = to);
        }
        told
    }

    fn ask(&mut self, verb: CommandVerb, about: CommandArgs) -> String {
        self.next_ask += 1;
        let what = about.what.map_or(String::new(), |what| format!(" {}", what.name()));
        let number = about.number.map_or(String::new(), |number| format!(" {number}"));
        let told = format!("an operator asks: {}{what}{number}", verb.name());
        let at = self.now();
        let id = CommandId::new(format!("ask-{}", self.next_ask));
        let ask = Command { id, verb, by: "ann".into(), why: "rehearsal".into(), at, about };
        let pool = self.policy.name.clone();
        loop {
            let _answer = now_or_never(self.ports.disk.ask(&pool, &ask));
            if !self.is_cut_off() {
                return told;
            }
        }
    }

    fn mark(&mut self, key: &Key, mark: &OverrideWrite) {
        let pool = self.policy.name.clone();
        loop {
            let _answer = now_or_never(self.ports.disk.mark(&pool, key, mark));
            if !self.is_cut_off() {
                return;
            }
        }
    }

    fn stop_all(&mut self, except_repair: bool) -> String {
        let (since, by, why) = (self.now(), "ann".into(), "rehearsal".into());
        self.set_stop(Some(&GlobalStop { since, by, why, except_repair }));
        let except = if except_repair { " except repair" } else { "" };
        format!("an operator stops all pools{except}")
    }

    fn resume_all(&mut self) -> String {
        self.set_stop(None);
        "an operator resumes all pools".to_owned()
    }

    fn set_stop(&mut self, stop: Option<&GlobalStop>) {
        loop {
            let _answer = now_or_never(self.ports.disk.set_stop(stop));
            if !self.is_cut_off() {
                break;
            }
        }
        self.stop = stop.cloned();
    }

    /// After a power cut the process restarts, and the operator repeats the request before its first turn.
    fn is_cut_off(&mut self) -> bool {
        let dead = self.ports.disk.is_dead();
        if dead {
            self.restart(self.now());
        }
        dead
    }

    /// The machine at this place of the records, modulo their number.
    fn nth(&self, nth: u32) -> Option<(InstanceId, Key)> {
        // A restarted process has no records in memory yet; its store has them.
        let loaded = now_or_never(self.ports.disk.load(&self.policy.name)).ok()?.ok()?;
        let machines = &loaded.machines;
        let at = nth as usize % machines.len().max(1);
        machines.get(at).map(|machine| (machine.id.clone(), machine.key()))
    }

    fn keys(&self, ids: &[InstanceId]) -> Vec<Key> {
        let machines = self.process.remembered().map(|image| &image.machines[..]);
        let all = machines.unwrap_or_default().iter();
        all.filter(|machine| ids.contains(&machine.id)).map(Machine::key).collect()
    }

    /// Does what a hold asked for.
    pub(super) fn do_for_hold(&mut self, act: Act) {
        self.stirred = true;
        let told = match act {
            Act::Ask(verb, about) => self.ask(verb, about),
            Act::Delete { ids, now } => {
                let request = DeleteRequest { by: "ann".into(), why: "asked".into(), now };
                for key in self.keys(&ids) {
                    self.mark(&key, &OverrideWrite::Delete(Some(request.clone())));
                }
                format!("the operator marks {} for deletion", counted(ids.len(), "machine"))
            }
            Act::Free(ids) => {
                for key in self.keys(&ids) {
                    self.mark(&key, &OverrideWrite::Hold(None));
                }
                let mut stage = self.ports.stage.lock();
                let set = stage.set;
                for id in &ids {
                    let which = Which::Id(world::InstanceId::from(id.as_str()));
                    stage
                        .world
                        .happens(set, ExternalEvent::Protect(which, InstanceProtection::default()));
                }
                stage.hear();
                format!("the operator frees {}", counted(ids.len(), "machine"))
            }
            Act::ResumeAll => self.resume_all(),
            Act::Lift => {
                let mut stage = self.ports.stage.lock();
                let set = stage.set;
                if stage.world.locks(set).delete_only {
                    stage.world.happens(set, ExternalEvent::Deletes(Deletes::Allowed));
                }
                stage.world.happens(set, ExternalEvent::Lock(false));
                stage.hear();
                "the operator takes the locks off the set".to_owned()
            }
            Act::SwitchOff => {
                let mut stage = self.ports.stage.lock();
                let set = stage.set;
                stage.world.happens(set, ExternalEvent::SetNative(PlatformSpec::default()));
                stage.hear();
                "the operator switches the cloud's own features off".to_owned()
            }
        };
        let now = self.now();
        self.story.tell(now, self.scenario.start, &told);
        self.wake_for_person(now);
    }
}
