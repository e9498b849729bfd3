//! Scenarios as tests write them, numbers read off an outcome, and the story on one screen.

use std::fmt::Write as _;

use poolkeeper::model::plan::RolloutPhase;
use poolkeeper::model::policy::{Draft, Image, Policy};
use poolkeeper::model::quantity::Quantity;
use poolkeeper::model::time::Span;
use poolkeeper::sim::{self, End, RunOutcome, Scenario, TimelineRow, TimelineState};
use poolkeeper::world::{ExternalEvent, FrontDoorCall, ModelPatch, SetSpec};

/// Lines of a golden story; what is longer is cut in its middle.
const SCREEN: usize = 60;

pub fn policy(count: u32, surge: i64, down: i64, change: impl FnOnce(&mut Draft)) -> Policy {
    let mut draft = sim::draft("web", count);
    draft.rollout.max_surge = Quantity::count(surge).unwrap();
    draft.rollout.max_unavailable = Quantity::count(down).unwrap();
    change(&mut draft);
    Policy::build(draft).unwrap()
}

/// A calm pool on the old image; whose size and image stay as they are.
pub fn pool(policy: Policy) -> Scenario {
    let set = SetSpec::new("web", policy.count, sim::OLD_IMAGE);
    Scenario::plain(policy, 1, set)
}

/// The pool file owns the image of the model.
pub fn owns_image(draft: &mut Draft) {
    draft.model.image = Some(Image::Exact(sim::OLD_IMAGE.into()));
}

/// Others write the new image into the model.
pub fn new_image_after(minutes: i64) -> (Span, ExternalEvent) {
    (Span::minutes(minutes), ExternalEvent::PatchModel(ModelPatch::image(sim::NEW_IMAGE)))
}

pub fn gone(outcome: &RunOutcome) -> Vec<&TimelineRow> {
    outcome.timeline.rows.iter().filter(|row| row.gone.is_some()).collect()
}

pub fn born(outcome: &RunOutcome) -> Vec<&TimelineRow> {
    let from = outcome.timeline.from;
    outcome.timeline.rows.iter().filter(|row| row.created > from).collect()
}

/// The image that a machine was last seen on.
pub fn image_of<'o>(outcome: &'o RunOutcome, row: &TimelineRow) -> &'o str {
    let model = row.segments.last().map_or(0, |segment| segment.model);
    let model = &outcome.timeline.models[model as usize];
    model.split_once('#').map_or(model, |(image, _)| image)
}

/// The most machines at one time that we had taken out of service.
pub fn most_out(outcome: &RunOutcome) -> i32 {
    let mut steps = Vec::new();
    for row in &outcome.timeline.rows {
        let out = row.segments.iter().filter(|s| matches!(s.doing, TimelineState::Draining));
        steps.extend(out.flat_map(|segment| [(segment.from, 1), (segment.to, -1)]));
    }
    steps.sort_unstable();
    let highest = steps.iter().scan(0, |out, (_, step)| {
        *out += step;
        Some(*out)
    });
    highest.max().unwrap_or(0)
}

pub fn calls(outcome: &RunOutcome, call: FrontDoorCall) -> u64 {
    outcome.calls.get(&call).copied().unwrap_or(0)
}

/// Sizes that we wrote, as (from, to), in order.
pub fn raises(outcome: &RunOutcome) -> Vec<(u32, u32)> {
    let words = outcome.story.iter().flat_map(|line| line.split("; "));
    let raises = words.filter_map(|part| {
        let (from, to) = part.strip_prefix("raise ")?.split_once('→')?;
        Some((from.parse().ok()?, to.parse().ok()?))
    });
    raises.collect()
}

pub fn no_law_broken(outcome: &RunOutcome) {
    assert!(!outcome.is_broken(), "{:#?}\n{}", outcome.breaches, outcome.story.join("\n"));
}

/// The story is the one that was last read and agreed to.
pub fn same_story(name: &str, header: &str, outcome: &RunOutcome) {
    let told = tell(header, outcome);
    super::golden::golden(&format!("incidents/{name}.txt"), &told);
}

fn tell(header: &str, outcome: &RunOutcome) -> String {
    let mut text = format!("{header}\n\n");
    let room = SCREEN - header.lines().count() - 6;
    let lines = &outcome.story;
    let cut = lines.len().saturating_sub(room);
    for (at, line) in lines.iter().enumerate() {
        let after_head = at >= room / 2;
        match at - room / 2 * usize::from(after_head) {
            0 if after_head && cut > 0 => {
                let _infallible = writeln!(text, "  … {cut} more lines …");
            }
            n if after_head && n < cut => {}
            _ => {
                let _infallible = writeln!(text, "{line}");
            }
        }
    }
    let _infallible = writeln!(
        text,
        "\n{} after {} turns: {} available at least, {} in total at most, {} made, {} gone;",
        end(&outcome.end),
        outcome.turns,
        outcome.lowest_available,
        outcome.highest_live,
        born(outcome).len(),
        gone(outcome).len(),
    );
    let writes =
        [FrontDoorCall::PatchCapacity, FrontDoorCall::PatchModel, FrontDoorCall::DeleteInstances];
    let [sizes, models, deletes] = writes.map(|call| calls(outcome, call));
    let _infallible =
        writeln!(text, "calls that write: size {sizes}, model {models}, deletes {deletes}.");
    text
}

fn end(end: &End) -> String {
    match end {
        End::Ended(RolloutPhase::None) => "Settled".to_owned(),
        End::Ended(phase) => phase.name().to_owned(),
        End::Waits { remedy, hold } => format!("Waits for {} ({hold})", remedy.name()),
        other => format!("{other:?}"),
    }
}
