//! Spans that ended, kept for whoever carries them away: a bounded number, each of a bounded size. Who is slower than we
//! are loses some, and is told how many; nobody waits.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::Context;
use tracing_subscriber::registry::LookupSpan;

use crate::ambient::{Clock, Dice, SystemClock};
use crate::model::time::Time;

/// The target of spans that are for traces alone: no log line names them.
pub const TARGET: &str = "traces";

/// Spans that wait to be carried away.
// 4,096: a minute of a thousand busy pools, some megabytes.
const KEPT: usize = 4_096;
/// Events and fields of one span; what comes later is counted only.
const EVENTS: usize = 64;
const FIELDS: usize = 32;
/// Letters of one text.
const LETTERS: usize = 512;

/// A named value.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    Text(Box<str>),
    Int(i64),
    Float(f64),
    Bool(bool),
}

pub type Fields = Vec<(&'static str, Value)>;

/// Something that was told while a span was open.
#[derive(Debug, Clone, PartialEq)]
pub struct Happened {
    pub at: Time,
    pub level: &'static str,
    pub say: Box<str>,
    pub fields: Fields,
}

/// A span that ended.
#[derive(Debug, Clone, PartialEq)]
pub struct Ended {
    pub name: &'static str,
    pub trace: [u64; 2],
    pub id: u64,
    pub parent: Option<u64>,
    pub began: Time,
    pub ended: Time,
    pub fields: Fields,
    pub events: Vec<Happened>,
    /// Events that were too many.
    pub more: u32,
    /// An error was told in it.
    pub failed: bool,
}

/// Where ended spans are; a copy is another handle to the same.
#[derive(Clone)]
pub struct Traces(Arc<Mutex<Kept>>);

struct Kept {
    spans: VecDeque<Ended>,
    lost: u64,
    dice: Dice,
}

impl fmt::Debug for Traces {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Traces").field("spans", &self.kept().spans.len()).finish_non_exhaustive()
    }
}

impl Traces {
    /// `seed`: other than that of every other process, since ids come from it.
    pub fn new(seed: u64) -> Self {
        let dice = Dice::from_seed(seed).branch("traces");
        Self(Arc::new(Mutex::new(Kept { spans: VecDeque::new(), lost: 0, dice })))
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The oldest, so many at most; and how many were lost since the last time.
    pub fn take(&self, most: usize) -> (Vec<Ended>, u64) {
        let mut kept = self.kept();
        let count = most.min(kept.spans.len());
        let lost = std::mem::take(&mut kept.lost);
        (kept.spans.drain(..count).collect(), lost)
    }

    fn keep(&self, span: Ended) {
        let mut kept = self.kept();
        if kept.spans.len() < KEPT {
            kept.spans.push_back(span);
        } else {
            kept.lost += 1;
        }
    }

    /// 0 is no id.
    fn id(&self) -> u64 {
        self.kept().dice.next_u64().max(1)
    }
}

/// What makes spans of ours into [`Ended`].
#[derive(Debug)]
pub(super) struct Collect(pub Traces);

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for Collect {
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        let Some(span) = context.span(id) else { return };
        let parent = span.parent().and_then(|parent| {
            let extensions = parent.extensions();
            extensions.get::<Ended>().map(|parent| (parent.trace, parent.id))
        });
        let trace = parent.map_or_else(|| [self.0.id(), self.0.id()], |(trace, _)| trace);
        let mut seen = Seen::default();
        attributes.record(&mut seen);
        let now = SystemClock.now();
        span.extensions_mut().insert(Ended {
            name: attributes.metadata().name(),
            trace,
            id: self.0.id(),
            parent: parent.map(|(_, id)| id),
            began: now,
            ended: now,
            fields: seen.fields,
            events: Vec::new(),
            more: 0,
            failed: false,
        });
    }

    fn on_record(&self, id: &Id, values: &Record<'_>, context: Context<'_, S>) {
        let Some(span) = context.span(id) else { return };
        if let Some(open) = span.extensions_mut().get_mut::<Ended>() {
            let mut seen = Seen { say: None, fields: std::mem::take(&mut open.fields) };
            values.record(&mut seen);
            open.fields = seen.fields;
        }
    }

    fn on_event(&self, event: &Event<'_>, context: Context<'_, S>) {
        let Some(span) = context.event_span(event) else { return };
        let mut extensions = span.extensions_mut();
        let Some(open) = extensions.get_mut::<Ended>() else { return };
        let level = *event.metadata().level();
        open.failed |= level == Level::ERROR;
        if open.events.len() >= EVENTS {
            open.more = open.more.saturating_add(1);
            return;
        }
        let mut seen = Seen::default();
        event.record(&mut seen);
        open.events.push(Happened {
            at: SystemClock.now(),
            level: level.as_str(),
            say: seen.say.unwrap_or_default(),
            fields: seen.fields,
        });
    }

    fn on_close(&self, id: Id, context: Context<'_, S>) {
        let ended = context.span(&id).and_then(|span| span.extensions_mut().remove::<Ended>());
        if let Some(mut ended) = ended {
            ended.ended = SystemClock.now();
            self.0.keep(ended);
        }
    }
}

/// What is in an event or a span.
#[derive(Default)]
struct Seen {
    say: Option<Box<str>>,
    fields: Fields,
}

impl Seen {
    fn add(&mut self, field: &Field, value: Value) {
        match value {
            Value::Text(text) if field.name() == "message" => self.say = Some(text),
            value if self.fields.len() < FIELDS => self.fields.push((field.name(), value)),
            _ => {}
        }
    }
}

fn short(text: &str) -> Value {
    Value::Text(text.chars().take(LETTERS).collect::<String>().into())
}

impl Visit for Seen {
    fn record_f64(&mut self, field: &Field, value: f64) {
        self.add(field, Value::Float(value));
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.add(field, Value::Int(value));
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.add(field, Value::Int(i64::try_from(value).unwrap_or(i64::MAX)));
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.add(field, Value::Bool(value));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.add(field, short(value));
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.add(field, short(&format!("{value:?}")));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tracing_subscriber::layer::SubscriberExt;

    fn traced(traces: &Traces, what: impl FnOnce()) {
        let subscriber = tracing_subscriber::registry().with(Collect(traces.clone()));
        tracing::subscriber::with_default(subscriber, what);
    }

    #[test]
    fn a_span_has_its_parent_its_fields_and_what_was_told_in_it() {
        let traces = Traces::new(1);
        traced(&traces, || {
            let turn = tracing::info_span!("turn", pool = "web");
            turn.in_scope(|| {
                let call =
                    tracing::info_span!("call", class = "read", status = tracing::field::Empty);
                call.record("status", 200_u16);
                call.in_scope(|| tracing::warn!(entry = "1-2", n = 3, "slow"));
                drop(call);
                tracing::error!("broken");
            });
            tracing::info!("outside of every span");
        });
        let (spans, lost) = traces.take(10);
        let [call, turn] = &spans[..] else { panic!("{spans:?}") };
        assert_eq!((call.name, turn.name, lost), ("call", "turn", 0));
        assert_eq!((call.parent, turn.parent), (Some(turn.id), None));
        assert!(call.trace == turn.trace && call.id != turn.id);
        assert_eq!(turn.fields, [("pool", Value::Text("web".into()))]);
        assert_eq!(call.fields[1], ("status", Value::Int(200)));
        assert_eq!((&*call.events[0].say, call.events[0].level), ("slow", "WARN"));
        assert_eq!(call.events[0].fields[1], ("n", Value::Int(3)));
        assert!(turn.failed && !call.failed);
        assert!(traces.take(10).0.is_empty());
    }

    #[test]
    fn what_nobody_carries_away_is_lost_and_counted() {
        let traces = Traces::new(1);
        traced(&traces, || {
            for _ in 0..KEPT + 3 {
                let _ended = tracing::info_span!("turn");
            }
            let long = tracing::info_span!("long");
            long.in_scope(|| (0..EVENTS + 2).for_each(|_| tracing::info!("again")));
        });
        let (spans, lost) = traces.take(usize::MAX);
        assert_eq!((spans.len(), lost), (KEPT, 4));
        traced(&traces, || {
            let long = tracing::info_span!("long");
            long.in_scope(|| (0..EVENTS + 2).for_each(|_| tracing::info!("again")));
        });
        let (spans, lost) = traces.take(1);
        assert_eq!((spans[0].events.len(), spans[0].more, lost), (EVENTS, 2, 0));
    }
}
