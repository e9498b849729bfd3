//! The input of a rehearsal: a pool and its cloud, the faults and when they stop, and what people do meanwhile.

use super::cluster::ClusterSpec;
use super::days::SizeTest;
use super::disk::DiskCut;
use super::stage::Adapter;
use crate::model::calendar::Windows;
use crate::model::ids::{PoolName, ScaleSetId};
use crate::model::inventory::ModelFields;
use crate::model::machine::DeleteRequest;
use crate::model::owner::Keeper;
use crate::model::plan::{CommandArgs, CommandVerb, Verdict};
use crate::model::policy::{Draft, Image, Policy, PolicyError};
use crate::model::time::{Span, Time};
use crate::world::{ExternalEvent, HOUR, Millis, ModelPatch, SetSpec, WorldFaults, WorldSettings};

/// Start of every rehearsal; fixed, since any day would do. 2026-03-01T12:00:00Z.
pub const START: Time = Time::from_millis(1_772_366_400_000);

/// The image that pools start on, and their target image.
pub const OLD_IMAGE: &str = "images/base/1.0.0";
pub const NEW_IMAGE: &str = "images/base/2.0.0";

/// The most instances a scale set can hold.
const LARGEST: u32 = 1_000;

/// The rehearsal stops after this many turns, plus one every ten seconds until its calm.
// 60,000: a week of virtual time at a turn every ten seconds.
pub const MOST_TURNS: u32 = 60_000;

/// The rehearsal stops this much virtual time after the calm began.
// 28 days: fits a rollout of 300 machines, one at a time, half an hour each, eight hours a day.
pub const LONGEST: Span = Span::days(28);

/// Actions of people in a rehearsal.
#[derive(Debug, Clone, PartialEq)]
pub enum UserAction {
    /// An operator gives a command.
    Ask(CommandVerb),
    /// An operator gives a command with arguments.
    AskAbout(CommandVerb, CommandArgs),
    /// Scale the pool: for this long, or with its file; and let the machines at these places of the listing leave.
    Scale { to: u32, lasts: Option<Span>, places: Vec<u32> },
    /// Mark the machine at this place of the listing for deletion.
    Delete { nth: u32, request: DeleteRequest },
    /// Remove that mark from the machine at this place.
    Undelete { nth: u32 },
    /// Hold the machine at this place, or release it.
    Hold { nth: u32, held: bool },
    /// The pool file changes: another size.
    Count(u32),
    /// The pool file changes: another image in the model that the pool owns.
    Image(Box<str>),
    /// The pool file changes: other windows.
    Windows(Windows),
    /// Another source for the remaining cores.
    Meter(QuotaSource),
    /// A gate changes its verdict.
    Gate(Verdict),
    /// From now on gates report this measuring time.
    GateTime(GateTime),
    /// The metric of the pool's profiles has another value, or none.
    Metric(Option<u32>),
    /// This many machines serve in the pool that shares are of. `None`: nothing is known of it.
    OtherPool(Option<u32>),
    /// The pool file changes: another percent in its shares.
    Share(u32),
    /// A newer version of this program starts, which computes fingerprints differently.
    Upgrade,
    /// An operator stops all pools, perhaps except repair.
    StopAll { except_repair: bool },
    /// An operator lifts that.
    ResumeAll,
    /// Another actor cordons the node of the machine at this place.
    Cordon { nth: u32 },
}

/// The measuring time that a gate reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum GateTime {
    #[default]
    Now,
    /// Always this long ago; a negative span is in the future.
    Ago(Span),
    /// The moment this was set, and never again.
    Once,
}

/// Source for the remaining cores.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum QuotaSource {
    #[default]
    Missing,
    /// The cloud, read again when the last answer is older than this.
    Cloud { each: Span },
    /// A source that always reports this number, true or not.
    Says(u32),
}

/// One complete rehearsal.
#[derive(Debug, Clone)]
pub struct Scenario {
    pub seed: u64,
    pub policy: Policy,
    pub start: Time,
    pub settings: WorldSettings,
    pub set: SetSpec,
    pub adapter: Adapter,
    /// The keeper whose owner tag the pool knows. `Unknown`: the rehearsal leaves owner tags out.
    pub keeper: Keeper,
    /// `None`: machines have no nodes.
    pub cluster: Option<ClusterSpec>,
    /// Faults until the calm.
    pub faults: WorldFaults,
    /// From then on no new fault occurs, and everything must settle.
    pub calm_after: Span,
    pub meter: QuotaSource,
    /// Quota of cores in the calm; `None`: unlimited.
    pub quota_after: Option<u32>,
    /// What happens to the cloud, by time after the start.
    pub deeds: Vec<(Span, ExternalEvent)>,
    /// What people ask of us, by time after the start.
    pub wishes: Vec<(Span, UserAction)>,
    /// In the calm an operator does what holds ask for.
    pub operator: bool,
    /// Machine events wake the pool at once. In production none arrive, and the loop polls.
    pub hears: bool,
    /// Power cuts.
    pub cuts: Vec<DiskCut>,
    /// Nothing but the size moves, and the rehearsal ends at a time.
    pub size_test: Option<SizeTest>,
    /// Extra turns after everything has settled, to prove that it stays quiet.
    pub linger: u32,
    /// `None`: no load balancer sends traffic to the machines.
    pub balanced: Option<BalancerSetup>,
    /// `None`: the pool has no hooks.
    pub hooked: Option<HookSetup>,
}

/// The hooks of a pool, and how often their receivers make trouble.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct HookSetup {
    pub before: bool,
    pub after: bool,
    /// The part of all deliveries.
    pub trouble: f64,
}

/// Load balancers in front of the machines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BalancerSetup {
    pub pools: u32,
    /// The pools belong to this many load balancers, in turn.
    pub balancers: u32,
    /// Interval of the probes.
    pub probe: Millis,
}

impl Scenario {
    /// A pool as its file describes it, with `machines` machines on the old image (`None`: the file's count). The image
    /// changes at the start: by the pool if it owns the model, else by another client.
    pub fn from_policy(
        policy: &Policy,
        machines: Option<u32>,
        seed: u64,
        faults: WorldFaults,
    ) -> Self {
        let capacity = machines.unwrap_or(policy.least_count()).min(LARGEST);
        let mut draft = Draft::clone(policy);
        if machines.is_some() {
            draft.fix_count(capacity);
        }
        let owns_image = draft.model.image.is_some() || draft.model.fields.image.is_some();
        let mut set = SetSpec::new(draft.name.as_str(), capacity, OLD_IMAGE);
        let vm_size = draft.model.fields.vm_size.as_deref().unwrap_or("Standard_D4s_v5");
        vm_size.clone_into(&mut set.model.vm_size);
        let deeds = if owns_image {
            // The file already wants another image than the set has.
            Vec::new()
        } else {
            vec![(Span::seconds(30), ExternalEvent::PatchModel(ModelPatch::image(NEW_IMAGE)))]
        };
        let calm = faults.is_calm();
        let mut scenario = Self::plain(draft_or(policy, draft), seed, set);
        // Azure does not document whether each page of a listing is counted; here the listing is one request.
        scenario.settings.switches.pages_cost = false;
        scenario.deeds = deeds;
        scenario.faults = faults;
        scenario.calm_after = if calm { Span::ZERO } else { Span::from_millis(2 * HOUR) };
        scenario.operator = !calm;
        scenario
    }

    /// A calm pool without deeds or commands.
    pub fn plain(policy: Policy, seed: u64, set: SetSpec) -> Self {
        Self {
            seed,
            policy,
            start: START,
            settings: WorldSettings::default(),
            set,
            adapter: Adapter::default(),
            keeper: Keeper::default(),
            cluster: None,
            faults: WorldFaults::default(),
            calm_after: Span::ZERO,
            meter: QuotaSource::Missing,
            quota_after: None,
            deeds: Vec::new(),
            wishes: Vec::new(),
            operator: false,
            hears: false,
            cuts: Vec::new(),
            size_test: None,
            linger: 0,
            balanced: None,
            hooked: None,
        }
    }

    pub fn most_turns(&self) -> u32 {
        MOST_TURNS + (self.calm_after.millis() / 10_000) as u32
    }

    /// When it ends at the latest.
    pub fn last(&self) -> Time {
        match &self.size_test {
            Some(test) => self.start.plus(test.lasts),
            None => self.calm_from().plus(LONGEST),
        }
    }

    pub fn calm_from(&self) -> Time {
        self.start.plus(self.calm_after)
    }
}

/// The changed draft if it is valid, else the old policy.
fn draft_or(policy: &Policy, draft: Draft) -> Policy {
    Policy::build(draft).unwrap_or_else(|_: Vec<PolicyError>| policy.clone())
}

/// A draft for rehearsals: the defaults of a pool file with this many machines.
pub fn draft(name: &str, count: u32) -> Draft {
    let set = format!(
        "/subscriptions/0/resourceGroups/rehearsal/providers/Microsoft.Compute/virtualMachineScaleSets/{name}"
    );
    Draft { count, ..Draft::with_defaults(PoolName::new(name), ScaleSetId::new(set)) }
}

/// The same policy with one thing changed.
pub(super) fn changed(policy: &Policy, change: impl FnOnce(&mut Draft)) -> Policy {
    let mut draft = Draft::clone(policy);
    change(&mut draft);
    draft_or(policy, draft)
}

pub(super) fn with_image(policy: &Policy, image: &str) -> Policy {
    changed(policy, |draft| {
        draft.model.image = Some(Image::Exact(image.into()));
        draft.model.fields = ModelFields { image: None, ..draft.model.fields.clone() };
    })
}
