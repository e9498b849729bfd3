//! What is rehearsed: a pool and its cloud, what goes wrong and until when, and what people do meanwhile.

use super::cluster::ClusterSpec;
use super::disk::Cut;
use super::stage::Adapter;
use crate::model::calendar::Windows;
use crate::model::ids::{PoolName, ScaleSetId};
use crate::model::inventory::ModelFields;
use crate::model::machine::DeleteRequest;
use crate::model::owner::Keeper;
use crate::model::plan::{AskArgs, AskVerb, Verdict};
use crate::model::policy::{Draft, Fault, Image, Policy};
use crate::model::time::{Span, Time};
use crate::world::{Deed, Faults, HOUR, ModelPatch, SetSpec, Settings};

/// When every rehearsal begins: any day would do, so it is always the same one. 2026-03-01T12:00:00Z.
pub const START: Time = Time::from_millis(1_772_366_400_000);

/// The image that pools start on, and the one they are moved to.
pub const OLD_IMAGE: &str = "images/base/1.0.0";
pub const NEW_IMAGE: &str = "images/base/2.0.0";

/// A scale set holds no more.
const LARGEST: u32 = 1_000;

/// Turns after which a rehearsal is given up, beside one every ten seconds until its calm.
// 60,000: a week of virtual time at a turn every ten seconds.
pub const MOST_TURNS: u32 = 60_000;

/// Virtual time after the calm began, after which a rehearsal is given up.
// 28 days: a rollout of 300 machines, one at a time and eight hours a day, half an hour each, fits into it.
pub const LONGEST: Span = Span::days(28);

/// The people who act in a rehearsal, by what they do.
#[derive(Debug, Clone, PartialEq)]
pub enum Wish {
    /// An operator asks for a verb.
    Ask(AskVerb),
    /// And says what it is about.
    AskAbout(AskVerb, AskArgs),
    /// Mark the machine that would be listed at this place for deletion.
    Delete { nth: u32, request: DeleteRequest },
    /// Take the mark of the machine at this place back.
    Undelete { nth: u32 },
    /// Hold the machine at this place, or let it go.
    Hold { nth: u32, held: bool },
    /// The pool file is changed: another size.
    Count(u32),
    /// The pool file is changed: another image in the model it owns.
    Image(Box<str>),
    /// The pool file is changed: other hours in which it may be worked on.
    Windows(Windows),
    /// Somebody else tells how many cores are left.
    Meter(Meter),
    /// A gate turns.
    Gate(Verdict),
    /// From now on gates say that they measured then.
    GateTime(GateTime),
    /// A newer version of this program starts, which computes fingerprints another way.
    Upgrade,
    /// Somebody else cordons the node of the machine at this place.
    Cordon { nth: u32 },
}

/// When a gate measured, by what it says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum GateTime {
    #[default]
    Now,
    /// Always so long ago; less than nothing is ahead of now.
    Ago(Span),
    /// When this was said, and never again.
    Once,
}

/// Who tells how many cores are left.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Meter {
    #[default]
    Nobody,
    /// The cloud, asked again when its last answer is older than this.
    Cloud { each: Span },
    /// Somebody who says this number whatever is true.
    Says(u32),
}

/// One rehearsal, whole.
#[derive(Debug, Clone)]
pub struct Scenario {
    pub seed: u64,
    pub policy: Policy,
    pub start: Time,
    pub settings: Settings,
    pub set: SetSpec,
    pub adapter: Adapter,
    /// Whose owner tag the pool knows. `Unknown`: the rehearsal leaves owner tags out.
    pub keeper: Keeper,
    /// `None`: machines carry no nodes.
    pub cluster: Option<ClusterSpec>,
    /// How badly the world behaves until the calm.
    pub faults: Faults,
    /// From then on nothing goes wrong any more, and everything must settle.
    pub calm_after: Span,
    pub meter: Meter,
    /// Cores that may be taken in the calm; none: as many as one likes.
    pub quota_after: Option<u32>,
    /// What happens to the cloud, by its time after the start.
    pub deeds: Vec<(Span, Deed)>,
    /// What people ask of us, by its time after the start.
    pub wishes: Vec<(Span, Wish)>,
    /// In the calm an operator does what holds ask for.
    pub operator: bool,
    /// What happens to machines wakes the pool at once. Nothing tells it in production, where it looks for itself.
    pub hears: bool,
    /// Where the power goes.
    pub cuts: Vec<Cut>,
    /// Turns to go on for after everything has settled, to prove that it stays quiet.
    pub linger: u32,
}

impl Scenario {
    /// A pool as its file says, on `machines` machines of the old image (the file's count without a number); the image
    /// changes at the start, by the pool itself where it owns the model and by others where not.
    pub fn from_policy(policy: &Policy, machines: Option<u32>, seed: u64, faults: Faults) -> Self {
        let capacity = machines.unwrap_or(policy.count).min(LARGEST);
        let mut draft = Draft::clone(policy);
        if machines.is_some() {
            draft.count = capacity;
        }
        let owns_image = draft.model.image.is_some() || draft.model.fields.image.is_some();
        let mut set = SetSpec::new(draft.name.as_str(), capacity, OLD_IMAGE);
        let vm_size = draft.model.fields.vm_size.as_deref().unwrap_or("Standard_D4s_v5");
        vm_size.clone_into(&mut set.model.vm_size);
        let deeds = if owns_image {
            // The file already wants another image than the set has.
            Vec::new()
        } else {
            vec![(Span::seconds(30), Deed::PatchModel(ModelPatch::image(NEW_IMAGE)))]
        };
        let calm = faults.is_calm();
        let mut scenario = Self::plain(draft_or(policy, draft), seed, set);
        // Nobody documents whether each page of a listing is counted; here the listing is one request.
        scenario.settings.switches.pages_cost = false;
        scenario.deeds = deeds;
        scenario.faults = faults;
        scenario.calm_after = if calm { Span::ZERO } else { Span::from_millis(2 * HOUR) };
        scenario.operator = !calm;
        scenario
    }

    /// A calm pool in which nobody does anything.
    pub fn plain(policy: Policy, seed: u64, set: SetSpec) -> Self {
        Self {
            seed,
            policy,
            start: START,
            settings: Settings::default(),
            set,
            adapter: Adapter::default(),
            keeper: Keeper::default(),
            cluster: None,
            faults: Faults::default(),
            calm_after: Span::ZERO,
            meter: Meter::Nobody,
            quota_after: None,
            deeds: Vec::new(),
            wishes: Vec::new(),
            operator: false,
            hears: false,
            cuts: Vec::new(),
            linger: 0,
        }
    }

    pub fn most_turns(&self) -> u32 {
        MOST_TURNS + (self.calm_after.millis() / 10_000) as u32
    }

    pub fn calm_from(&self) -> Time {
        self.start.plus(self.calm_after)
    }
}

/// The changed draft, where it still makes sense.
fn draft_or(policy: &Policy, draft: Draft) -> Policy {
    Policy::build(draft).unwrap_or_else(|_: Vec<Fault>| policy.clone())
}

/// A draft for rehearsals: the defaults of a pool file, so many machines.
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
