//! Records every request and the changes of VMs, for judges that see nothing else of a client. Only on request of the
//! seed, and never pruned: a proof ends before the record grows large.
//!
//! Never here: login requests (they contain secrets), or the token of a request.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::Emulator;
use super::cloud::EmulatedCloud;
use super::entra;
use super::reply::EmulatorReply;
use super::request::EmulatorRequest;
use super::seed::SettingsSeed;
use super::text::rfc3339;
use crate::world::{Millis, Provisioning, SetId, World};

#[derive(Debug, Default)]
pub(super) struct Record {
    /// Record the bodies of answers too.
    answers: bool,
    asked: Vec<RecordEntry>,
    numbers: Vec<Numbers>,
    /// The last numbers of each set: only changes add a line.
    last: BTreeMap<SetId, Count>,
}

#[derive(Debug)]
struct RecordEntry {
    /// When it was served, by the system clock.
    at: Millis,
    /// The client that the token names.
    client: Option<String>,
    method: String,
    path: String,
    /// For calls that change something.
    body: Option<Value>,
    /// `None`: an ordered fault lost the answer.
    status: Option<u16>,
    answer: Option<Value>,
    end: End,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    Waiting,
    Answered,
    /// The caller closed the connection before the answer.
    Gone,
}

impl End {
    const fn name(self) -> &'static str {
        match self {
            End::Waiting => "waiting",
            End::Answered => "answered",
            End::Gone => "gone",
        }
    }
}

#[derive(Debug)]
struct Numbers {
    real: Millis,
    world: Millis,
    set: SetId,
    count: Count,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Count {
    capacity: u32,
    /// Every VM that exists, including those that are being deleted.
    there: usize,
    deleting: usize,
    /// Serving, and not being deleted.
    ready: usize,
    outdated: usize,
}

/// The lowest and the highest numbers of a set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Extremes {
    pub fewest_ready: usize,
    /// Including those that are being deleted.
    pub most_there: usize,
}

/// How many VMs served from a moment on, and how many were being deleted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReadyCount {
    /// By the world's clock.
    pub at: Millis,
    pub ready: usize,
    pub deleting: usize,
}

impl Record {
    pub fn wanted(settings: &SettingsSeed) -> Option<Self> {
        let SettingsSeed { record, record_answers: answers, .. } = settings;
        (*record || *answers).then(|| Self { answers: *answers, ..Self::default() })
    }

    /// `None` unless exactly one set exists: the numbers of several sets mean nothing together.
    pub fn extremes(&self) -> Option<Extremes> {
        let only = self.last.len() == 1;
        let fewest_ready = self.numbers.iter().map(|one| one.count.ready).min();
        let most_there = self.numbers.iter().map(|one| one.count.there).max();
        let extremes = Extremes { fewest_ready: fewest_ready?, most_there: most_there? };
        only.then_some(extremes)
    }

    /// Every change, in order of time. Empty unless exactly one set exists.
    pub fn ready_counts(&self) -> Vec<ReadyCount> {
        let numbers = self.numbers.iter().filter(|_| self.last.len() == 1);
        let count = |one: &Numbers| {
            let Count { ready, deleting, .. } = one.count;
            ReadyCount { at: one.world, ready, deleting }
        };
        numbers.map(count).collect()
    }

    /// Its index in the record; `None`: calls of this kind are not recorded.
    pub fn asked(
        &mut self,
        ask: &EmulatorRequest,
        reply: Option<&EmulatorReply>,
        at: Millis,
    ) -> Option<usize> {
        if ask.lower.first().is_none_or(|first| first != "subscriptions") {
            return None;
        }
        let changes = !matches!(ask.method.as_str(), "GET" | "HEAD");
        self.asked.push(RecordEntry {
            at,
            client: entra::bearer(ask),
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

    /// Records the numbers of every set that changed. After the first call it counts only sets with events: it does not
    /// count a million VMs at each call.
    pub fn look(&mut self, world: &mut World, real: Millis) {
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

/// For `GET /_control/record`. `?from=100`: the calls only, without the first hundred.
pub(super) fn shown(cloud: &EmulatedCloud, ask: &EmulatorRequest) -> Result<Value, String> {
    let Some(record) = &cloud.record else {
        return Err(
            "nothing is recorded: the seed asks for it with settings: {record: true}".into()
        );
    };
    let from = ask.get("from").and_then(|from| from.parse().ok());
    let asked = record.asked.iter().skip(from.unwrap_or(0)).map(|one| {
        let mut shown = json!({ "at": one.at, "client": one.client, "method": one.method,
            "path": one.path, "body": one.body, "status": one.status,
            "end": one.end.name() });
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

/// A call that waits for its answer. Dropped before the answer: the caller is gone.
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
