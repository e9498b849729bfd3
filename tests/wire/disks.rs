//! A cloud that resets the disks of a set when it is sent an image alone.

use poolkeeper::model::action::WriteScope;
use poolkeeper::model::command::CommandName;
use poolkeeper::model::plan::{CommandArgs, CommandVerb, RolloutPhase, WaitKind};
use poolkeeper::model::policy::Draft;
use poolkeeper::model::time::Span;
use poolkeeper::sim::{End, Intervention, Scenario, UserAction};
use serde_json::json;

use crate::wire::kit::{Played, There, limits, play, policy, scenario, upgraded};

/// Four machines with large disks, and the switch on.
fn there() -> There {
    let storage = json!({"osDisk": {"diskSizeGB": 128},
        "dataDisks": [{"lun": 0, "createOption": "Empty", "diskSizeGB": 64}]});
    let model = json!({"properties": {"virtualMachineProfile": {"storageProfile": storage}}});
    let switches = json!({"imagePatchResetsDisks": true, "imagePatchDropsDataDisks": true});
    There {
        seed: json!({"settings": {"switches": switches}}),
        set: json!({"resource": model}),
        ..There::uniform(4)
    }
}

fn web(there: &There, scope: WriteScope) -> Scenario {
    let how = |draft: &mut Draft| {
        limits(draft, "1", "0");
        upgraded(draft);
        draft.model.write = scope;
    };
    scenario(&policy("web", there.machines, how), there, 1)
}

fn replaced(played: &Played) -> usize {
    played.outcome.timeline.rows.iter().filter(|row| row.gone.is_some()).count()
}

#[test]
fn an_image_alone_stops_the_rollout_before_a_machine_is_replaced() {
    let there = there();
    let played = play(&web(&there, WriteScope::Image), &there);
    let story = || played.story(30);
    assert_eq!(played.outcome.breaches, [], "{}", story());
    let waits =
        End::Waits { remedy: Intervention::Command(CommandName::Approve), hold: "modelMoved" };
    assert_eq!(played.outcome.end, waits, "{}", story());
    assert_eq!((replaced(&played), played.outcome.timeline.rows.len()), (0, 4), "{}", story());
    assert_eq!(played.asked(|kind| kind.starts_with("PATCH")), 1, "{:?}", played.requests);
}

#[test]
fn a_person_accepts_what_the_write_left() {
    let there = there();
    let mut scenario = web(&there, WriteScope::Image);
    let about = CommandArgs { what: Some(WaitKind::Model), ..CommandArgs::default() };
    scenario.wishes = vec![(Span::minutes(20), UserAction::AskAbout(CommandVerb::Approve, about))];
    let played = play(&scenario, &there);
    let story = || played.story(30);
    assert_eq!(played.outcome.breaches, [], "{}", story());
    assert_eq!(played.outcome.end, End::Ended(RolloutPhase::Succeeded), "{}", story());
    assert_eq!(replaced(&played), 4);
}

#[test]
fn a_whole_storage_profile_keeps_the_disks_and_goes_through() {
    let there = there();
    let played = play(&web(&there, WriteScope::StorageProfile), &there);
    let story = || played.story(30);
    assert_eq!(played.outcome.breaches, [], "{}", story());
    assert_eq!(played.outcome.end, End::Ended(RolloutPhase::Succeeded), "{}", story());
    assert_eq!(replaced(&played), 4);
    assert!(!played.outcome.story.iter().any(|line| line.contains("modelMoved")), "{}", story());
}
