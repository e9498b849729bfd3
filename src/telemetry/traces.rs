//! Buffers ended spans for an exporter: a bounded number, each of bounded size. A slow exporter loses some spans and
//! learns how many; producers never wait.

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

/// The target of spans for traces only: no log line names them.
pub const TARGET: &str = "traces";

/// Capacity of the buffer, in spans.
// 4,096: a minute of a thousand busy pools, some megabytes.
const KEPT: usize = 4_096;
/// Most events and fields of one span; further ones are only counted.
const EVENTS: usize = 64;
const FIELDS: usize = 32;
/// Longest text, in characters.
const LETTERS: usize = 512;

#[derive(Debug, Clone, PartialEq)]
pub enum SpanValue {
    Text(Box<str>),
    Int(i64),
    Float(f64),
    Bool(bool),
}

pub type SpanFields = Vec<(&'static str, SpanValue)>;

/// An event that was logged while a span was open.
#[derive(Debug, Clone, PartialEq)]
pub struct SpanEvent {
    pub at: Time,
    pub level: &'static str,
    pub say: Box<str>,
    pub fields: SpanFields,
}

/// A span that ended.
#[derive(Debug, Clone, PartialEq)]
pub struct TraceSpan {
    pub name: &'static str,
    pub trace: [u64; 2],
    pub id: u64,
    pub parent: Option<u64>,
    pub began: Time,
    pub ended: Time,
    pub fields: SpanFields,
    pub events: Vec<SpanEvent>,
    /// Number of events beyond the limit.
    pub more: u32,
    /// An error was logged in it.
    pub failed: bool,
}

/// The buffer of ended spans; a clone is another handle to the same buffer.
#[derive(Clone)]
pub struct Traces(Arc<Mutex<SpanQueue>>);

struct SpanQueue {
    spans: VecDeque<TraceSpan>,
    lost: u64,
    dice: Dice,
}

impl fmt::Debug for Traces {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Traces").field("spans", &self.kept().spans.len()).finish_non_exhaustive()
    }
}

impl Traces {
    /// `seed` must be unique to this process, because span ids derive from it.
    pub fn new(seed: u64) -> Self {
        let dice = Dice::from_seed(seed).branch("traces");
        Self(Arc::new(Mutex::new(SpanQueue { spans: VecDeque::new(), lost: 0, dice })))
    }

    fn kept(&self) -> MutexGuard<'_, SpanQueue> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes up to `most` of the oldest spans, and the number lost since the last call.
    pub fn take(&self, most: usize) -> (Vec<TraceSpan>, u64) {
        let mut kept = self.kept();
        let count = most.min(kept.spans.len());
        let lost = std::mem::take(&mut kept.lost);
        (kept.spans.drain(..count).collect(), lost)
    }

    fn keep(&self, span: TraceSpan) {
        let mut kept = self.kept();
        if kept.spans.len() < KEPT {
            kept.spans.push_back(span);
        } else {
            kept.lost += 1;
        }
    }

    /// 0 is not a valid id.
    fn id(&self) -> u64 {
        self.kept().dice.next_u64().max(1)
    }
}

/// A layer that turns our spans into [`TraceSpan`].
#[derive(Debug)]
pub(super) struct Collect(pub Traces);

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for Collect {
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        let Some(span) = context.span(id) else { return };
        let parent = span.parent().and_then(|parent| {
            let extensions = parent.extensions();
            extensions.get::<TraceSpan>().map(|parent| (parent.trace, parent.id))
        });
        let trace = parent.map_or_else(|| [self.0.id(), self.0.id()], |(trace, _)| trace);
        let mut seen = FieldVisitor::default();
        attributes.record(&mut seen);
        let now = SystemClock.now();
        span.extensions_mut().insert(TraceSpan {
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
        if let Some(open) = span.extensions_mut().get_mut::<TraceSpan>() {
            let mut seen = FieldVisitor { say: None, fields: std::mem::take(&mut open.fields) };
            values.record(&mut seen);
            open.fields = seen.fields;
        }
    }

    fn on_event(&self, event: &Event<'_>, context: Context<'_, S>) {
        let Some(span) = context.event_span(event) else { return };
        let mut extensions = span.extensions_mut();
        let Some(open) = extensions.get_mut::<TraceSpan>() else { return };
        let level = *event.metadata().level();
        open.failed |= level == Level::ERROR;
        if open.events.len() >= EVENTS {
            open.more = open.more.saturating_add(1);
            return;
        }
        let mut seen = FieldVisitor::default();
        event.record(&mut seen);
        open.events.push(SpanEvent {
            at: SystemClock.now(),
            level: level.as_str(),
            say: seen.say.unwrap_or_default(),
            fields: seen.fields,
        });
    }

    fn on_close(&self, id: Id, context: Context<'_, S>) {
        let ended = context.span(&id).and_then(|span| span.extensions_mut().remove::<TraceSpan>());
        if let Some(mut ended) = ended {
            ended.ended = SystemClock.now();
            self.0.keep(ended);
        }
    }
}

/// The fields of an event or a span.
#[derive(Default)]
struct FieldVisitor {
    say: Option<Box<str>>,
    fields: SpanFields,
}

impl FieldVisitor {
    fn add(&mut self, field: &Field, value: SpanValue) {
        match value {
            SpanValue::Text(text) if field.name() == "message" => self.say = Some(text),
            value if self.fields.len() < FIELDS => self.fields.push((field.name(), value)),
            _ => {}
        }
    }
}

fn short(text: &str) -> SpanValue {
    SpanValue::Text(text.chars().take(LETTERS).collect::<String>().into())
}

impl Visit for FieldVisitor {
    fn record_f64(&mut self, field: &Field, value: f64) {
        self.add(field, SpanValue::Float(value));
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.add(field, SpanValue::Int(value));
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.add(field, SpanValue::Int(i64::try_from(value).unwrap_or(i64::MAX)));
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.add(field, SpanValue::Bool(value));
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
        assert_eq!(turn.fields, [("pool", SpanValue::Text("web".into()))]);
        assert_eq!(call.fields[1], ("status", SpanValue::Int(200)));
        assert_eq!((&*call.events[0].say, call.events[0].level), ("slow", "WARN"));
        assert_eq!(call.events[0].fields[1], ("n", SpanValue::Int(3)));
        assert!(turn.failed && !call.failed);
        assert!(traces.take(10).0.is_empty());
    }

    #[test]
    fn what_no_exporter_takes_is_lost_and_counted() {
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
