//! Planners that do not watch the surplus that they are to watch.

use poolkeeper::model::action::Action;
use poolkeeper::model::plan::Input;
use poolkeeper::model::policy::UnconfirmedFall;
use poolkeeper::model::size::{GrayPolicy, GrayState};
use poolkeeper::model::time::Span;
use poolkeeper::plan::plan;
use poolkeeper::sim::{Scenario, UserAction};

use super::planners::{Answer, with_policy};
use super::scenes::pool;

/// The pool file asks for four of five to go, and they are watched for ten minutes.
pub fn falls() -> Scenario {
    let mut scenario = pool(5, 1, 0, |draft| {
        draft.unconfirmed = UnconfirmedFall::Allow;
        draft.gray = Some(GrayPolicy { observation: Span::minutes(10), ..GrayPolicy::default() });
    });
    scenario.wishes = vec![(Span::minutes(1), UserAction::Count(1))];
    scenario
}

/// The same, and they are switched off.
pub fn falls_off() -> Scenario {
    let mut scenario = falls();
    let mut draft = (*scenario.policy).clone();
    draft.gray.iter_mut().for_each(|gray| gray.state = GrayState::Standby);
    scenario.policy = poolkeeper::model::policy::Policy::build(draft).unwrap();
    scenario
}

/// It switches off what it has to take out of service first.
pub fn off_at_once(input: &Input<'_>) -> Answer {
    let mut planned = plan(input)?;
    for action in &mut planned.actions {
        if let Action::CutOff { targets, reason, before } = action.clone() {
            *action = Action::Standby { targets, reason, before };
        }
    }
    Ok(planned)
}

/// It lets surplus go at once though it is to be watched.
pub fn watches_nothing(input: &Input<'_>) -> Answer {
    let policy = with_policy(input, |draft| draft.gray = None);
    plan(&Input { policy: &policy, ..input.clone() })
}

/// It watches for no longer than a look.
pub fn looks_once(input: &Input<'_>) -> Answer {
    let policy = with_policy(input, |draft| {
        draft.gray.iter_mut().for_each(|gray| gray.observation = Span::ZERO);
    });
    plan(&Input { policy: &policy, ..input.clone() })
}

/// It takes the whole change for one step.
pub fn one_step(input: &Input<'_>) -> Answer {
    let policy = with_policy(input, |draft| {
        draft.gray.iter_mut().for_each(|gray| gray.change_percent = 100);
    });
    plan(&Input { policy: &policy, ..input.clone() })
}
