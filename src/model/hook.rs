//! Hooks: webhooks that are asked before a machine leaves service, and before it goes.

use super::time::{Span, Time};
use super::vocabulary::vocabulary;

vocabulary! {
    /// What a hook is asked for.
    pub enum HookPhase {
        /// The machine is to leave service: asked before its load balancers are.
        Before = "before",
        /// The machine is out of service: asked before it goes.
        After = "after",
        /// The machine stays: take back what was done at `before`.
        UndoBefore = "undoBefore",
        /// The machine stays: take back what was done at `after`.
        UndoAfter = "undoAfter",
    }
}

impl HookPhase {
    /// The phase that takes this one back.
    pub const fn undo(self) -> Option<Self> {
        match self {
            Self::Before => Some(Self::UndoBefore),
            Self::After => Some(Self::UndoAfter),
            Self::UndoBefore | Self::UndoAfter => None,
        }
    }
}

/// The hooks of a pool, by the names of webhooks in the settings of the daemon.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DrainHooks {
    pub before: Option<Box<str>>,
    pub after: Option<Box<str>>,
}

impl DrainHooks {
    pub const fn is_empty(&self) -> bool {
        self.before.is_none() && self.after.is_none()
    }
}

vocabulary! {
    /// How the calls of a hook ended.
    pub enum HookEnd {
        Done = "done",
        Refused = "refused",
    }
}

/// What one call came to. Texts have no secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HookAnswer {
    Done,
    /// The receiver works on it: ask again after this time.
    Working {
        after: Span,
        say: String,
    },
    /// Another attempt would be refused too.
    Refused {
        say: String,
    },
    /// `after`: the time that the receiver asked for.
    Retry {
        after: Option<Span>,
        say: String,
    },
}

/// A hook that is asked about one machine. Stored before each attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HookCall {
    pub phase: HookPhase,
    /// Its name in the settings of the daemon.
    pub webhook: Box<str>,
    /// When it was decided: part of the id of its delivery.
    pub since: Time,
    pub attempts: u32,
    /// It is not asked before this.
    pub next: Time,
    /// Why the last attempt did not end it, or why it was refused.
    pub said: Option<Box<str>>,
    pub end: Option<HookEnd>,
}

/// First and longest wait before a hook is asked again that did not say when.
const AGAIN: (Span, Span) = (Span::seconds(5), Span::minutes(5));
/// Maximum length of what a receiver said, in characters.
const LONGEST_SAID: usize = 300;

impl HookCall {
    pub fn new(phase: HookPhase, webhook: Box<str>, since: Time) -> Self {
        Self { phase, webhook, since, attempts: 0, next: since, said: None, end: None }
    }

    /// One more attempt begins. If the power is cut, it is repeated.
    pub fn begin(&mut self, at: Time) {
        let (first, longest) = AGAIN;
        let doublings = self.attempts.min(8);
        self.next = at.plus(first.times(1 << doublings).min(longest));
        self.attempts = self.attempts.saturating_add(1);
    }

    pub fn hear(&mut self, answer: HookAnswer, at: Time) {
        let mut said = match answer {
            HookAnswer::Done => {
                self.end = Some(HookEnd::Done);
                String::new()
            }
            HookAnswer::Refused { say } => {
                self.end = Some(HookEnd::Refused);
                say
            }
            HookAnswer::Working { after, say } => {
                self.next = at.plus(after);
                say
            }
            HookAnswer::Retry { after, say } => {
                self.next = self.next.max(at.plus(after.unwrap_or_default()));
                say
            }
        };
        if let Some((end, _)) = said.char_indices().nth(LONGEST_SAID) {
            said.truncate(end);
        }
        self.said = Some(said).filter(|said| !said.is_empty()).map(Box::from);
    }

    pub fn is_done(&self) -> bool {
        self.end == Some(HookEnd::Done)
    }

    pub fn is_refused(&self) -> bool {
        self.end == Some(HookEnd::Refused)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hook_is_asked_again_ever_more_rarely_or_when_it_says() {
        let mut call = HookCall::new(HookPhase::Before, "app".into(), Time::from_millis(0));
        let mut now = call.next;
        let mut waits = Vec::new();
        for _ in 0..8 {
            call.begin(now);
            call.hear(HookAnswer::Retry { after: None, say: "busy".into() }, now);
            waits.push(call.next.since(now).millis() / 1_000);
            now = call.next;
        }
        assert_eq!(waits, [5, 10, 20, 40, 80, 160, 300, 300]);
        call.begin(now);
        let after = Span::seconds(7);
        call.hear(HookAnswer::Working { after, say: "it drains".into() }, now);
        assert_eq!(call.next, now.plus(after), "it knows better");
        assert_eq!(call.said.as_deref(), Some("it drains"));
        call.begin(now);
        let asked = Span::hours(1);
        call.hear(HookAnswer::Retry { after: Some(asked), say: "é".repeat(400) }, now);
        assert_eq!(call.next, now.plus(asked));
        assert!(call.said.as_ref().is_some_and(|said| said.chars().count() == LONGEST_SAID));
        call.hear(HookAnswer::Done, now);
        assert!(call.is_done() && call.said.is_none());
    }
}
