//! What was asked of this Azure and what became of its VMs, for whoever judges a client by that alone. Kept where the
//! seed asks for it, from beginning to end: a proof is over before it grows large.
//!
//! Never here: what was asked at the login (secrets are in it) or with which token.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::Emulator;
use super::ask::Ask;
use super::cloud::Cloud;
use super::login;
use super::reply::Reply;
use super::seed::SettingsSeed;
use super::text::rfc3339;
use crate::world::{Ms, Provisioning, SetId, World};

#[derive(Debug, Default)]
pub(super) struct Record {
    /// The bodies of answers are kept too.
    answers: bool,
    asked: Vec<Asked>,
    numbers: Vec<Numbers>,
    /// The last of each set: only what changes is a line.
    last: BTreeMap<SetId, Count>,
}

#[derive(Debug)]
struct Asked {
    /// When it was served, by the clock of the machine.
    at: Ms,
    /// Whom the token was made out to.
    client: Option<String>,
    method: String,
    path: String,
    /// Of calls that change something.
    body: Option<Value>,
    /// `None`: its answer was lost by a fault that was ordered.
    status: Option<u16>,
    answer: Option<Value>,
    end: End,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    Waiting,
    Answered,
    /// The caller was gone before its answer.
    Gone,
}

#[derive(Debug)]
struct Numbers {
    real: Ms,
    world: Ms,
    set: SetId,
    count: Count,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Count {
    capacity: u32,
    /// Every VM that is not gone, those on their way out too.
    there: usize,
    deleting: usize,
    /// Serving, and not on their way out.
    ready: usize,
    outdated: usize,
}

/// How far a set went, to either side.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Extremes {
    pub fewest_ready: usize,
    /// Those on their way out too.
    pub most_there: usize,
}

impl Record {
    pub fn wanted(settings: &SettingsSeed) -> Option<Self> {
        let SettingsSeed { record, record_answers: answers, .. } = settings;
        (*record || *answers).then(|| Self { answers: *answers, ..Self::default() })
    }

    /// Nothing where no set is there, or several: their numbers say nothing together.
    pub fn extremes(&self) -> Option<Extremes> {
        let only = self.last.len() == 1;
        let fewest_ready = self.numbers.iter().map(|one| one.count.ready).min();
        let most_there = self.numbers.iter().map(|one| one.count.there).max();
        let extremes = Extremes { fewest_ready: fewest_ready?, most_there: most_there? };
        only.then_some(extremes)
    }

    /// Its place in the record; `None` where nothing is kept of such calls.
    pub fn asked(&mut self, ask: &Ask, reply: Option<&Reply>, at: Ms) -> Option<usize> {
        if ask.lower.first().is_none_or(|first| first != "subscriptions") {
            return None;
        }
        let changes = !matches!(ask.method.as_str(), "GET" | "HEAD");
        self.asked.push(Asked {
            at,
            client: login::bearer(ask),
            method: ask.method.clone(),
            path: ask.path.clone(),
            body: changes.then(|| serde_json::from_slice(&ask.body).unwrap_or_default()),
            status: reply.map(|reply| reply.status),
            answer: reply
                .filter(|_| self.answers)
                .and_then(|reply| serde_json::from_slice(&reply.body).ok()),
            end: End::Waiting,
        });
        Some(self.asked.len() - 1)
    }

    /// The numbers of every set that are not as they were. After the first look only sets of which the world tells
    /// something are looked at: a million VMs are not counted at each call.
    pub fn look(&mut self, world: &mut World, real: Ms) {
        let news = world.take_events();
        let sets: BTreeSet<SetId> = match self.last.is_empty() {
            true => world.sets().map(|(set, _)| set).collect(),
            false => news.into_iter().map(|event| event.set).collect(),
        };
        for set in sets {
            let Some(truth) = world.truth(set) else { continue };
            let stays =
                |vm: &&crate::world::TrueInstance| vm.provisioning != Provisioning::Deleting;
            let count = Count {
                capacity: truth.capacity,
                there: truth.instances.len(),
                deleting: truth.instances.len() - truth.active(),
                ready: truth.instances.iter().filter(stays).filter(|vm| vm.is_ready()).count(),
                outdated: truth.outdated(),
            };
            if self.last.insert(set, count) != Some(count) {
                self.numbers.push(Numbers { real, world: world.now(), set, count });
            }
        }
    }
}

/// For `GET /_control/record`; `?from=100`: the calls alone, without the first hundred.
pub(super) fn shown(cloud: &Cloud, ask: &Ask) -> Result<Value, String> {
    let Some(record) = &cloud.record else {
        return Err(
            "nothing is recorded: the seed asks for it with settings: {record: true}".into()
        );
    };
    let from = ask.get("from").and_then(|from| from.parse().ok());
    let asked = record.asked.iter().skip(from.unwrap_or(0)).map(|one| {
        let mut shown = json!({ "at": one.at, "client": one.client, "method": one.method,
            "path": one.path, "body": one.body, "status": one.status,
            "end": format!("{:?}", one.end).to_ascii_lowercase() });
        if let Some(answer) = &one.answer {
            shown["answer"] = answer.clone();
        }
        shown
    });
    let mut shown = json!({ "count": record.asked.len(), "requests": asked.collect::<Vec<_>>() });
    if from.is_none() {
        let numbers = record.numbers.iter().map(|one| {
            let name = cloud.world.peek(one.set).map(|view| view.name.to_string());
            let count = one.count;
            json!({ "at": one.real, "world": rfc3339(one.world), "set": name,
                "capacity": count.capacity, "there": count.there, "deleting": count.deleting,
                "ready": count.ready, "outdated": count.outdated })
        });
        shown["numbers"] = numbers.collect();
    }
    Ok(shown)
}

/// A call that waits for its answer. Dropped before that: the caller is gone.
pub(super) struct Waiting {
    emulator: Emulator,
    place: Option<usize>,
}

impl Waiting {
    pub fn new(emulator: &Emulator, place: Option<usize>) -> Self {
        Self { emulator: emulator.clone(), place }
    }

    pub fn answered(mut self) {
        self.ends(End::Answered);
    }

    fn ends(&mut self, end: End) {
        let Some(place) = self.place.take() else { return };
        let mut cloud = self.emulator.unmoved();
        if let Some(one) = cloud.record.as_mut().and_then(|record| record.asked.get_mut(place)) {
            one.end = end;
        }
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.ends(End::Gone);
    }
}
