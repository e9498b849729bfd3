//! Log formats: text for people at a terminal, one JSON object per line for everything else.
//!
//! An event carries the ids of its subjects as fields: pool, rollout, machine, entry. The code that handles an event
//! logs it once. Types of secrets print nothing, so fields cannot leak them.

use std::io;

use tracing::level_filters::LevelFilter;
use tracing::{Level, Metadata, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::layer::SubscriberExt;

use super::traces::{Collect, TARGET, Traces};
use crate::model::vocabulary::vocabulary;

/// The target of lines that copy the audit. They are written at every level of detail.
pub const AUDIT: &str = "audit";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogFormat {
    Text,
    Json,
}

vocabulary! {
    /// Log level of our own code. Libraries log from `warn` on.
    pub enum LogDetail {
        Error = "error",
        Warn = "warn",
        Info = "info",
        Debug = "debug",
        Trace = "trace",
    }
}

impl LogDetail {
    const fn level(self) -> Level {
        match self {
            LogDetail::Error => Level::ERROR,
            LogDetail::Warn => Level::WARN,
            LogDetail::Info => Level::INFO,
            LogDetail::Debug => Level::DEBUG,
            LogDetail::Trace => Level::TRACE,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Log {
    pub format: LogFormat,
    pub detail: LogDetail,
}

impl Log {
    /// A subscriber that writes to `to`. Spans also go to the traces, at every log level.
    pub fn subscriber<W>(self, to: W, traces: Option<Traces>) -> Box<dyn Subscriber + Send + Sync>
    where
        W: for<'w> MakeWriter<'w> + Send + Sync + 'static,
    {
        let ours = [("poolkeeper", LevelFilter::INFO), (TARGET, LevelFilter::INFO)];
        let ours: Targets = ours.into_iter().collect();
        let traces = traces.map(|traces| Collect(traces).with_filter(ours));
        let level = LevelFilter::from_level(self.detail.level());
        let others = level.min(LevelFilter::WARN);
        let told = Targets::new().with_default(others).with_target("poolkeeper", level);
        let told = told.with_target(AUDIT, LevelFilter::INFO);
        // It writes each failed call, with whole answers. The adapter says what failed.
        let told = told.with_target("kube_client", LevelFilter::OFF);
        let lines = tracing_subscriber::fmt::layer();
        let registry = tracing_subscriber::registry().with(traces);
        match self.format {
            LogFormat::Text => {
                let lines = lines.with_writer(Plain(to)).with_ansi(false).with_target(false);
                Box::new(registry.with(lines.with_filter(told)))
            }
            LogFormat::Json => {
                let lines = lines.with_writer(to).json().flatten_event(true).with_span_list(false);
                Box::new(registry.with(lines.with_filter(told)))
            }
        }
    }

    /// Log to standard error for the rest of this process, including panics. Returns false if a subscriber was already
    /// set.
    pub fn begin(self, traces: Option<Traces>) -> bool {
        let set =
            tracing::subscriber::set_global_default(self.subscriber(io::stderr, traces)).is_ok();
        if set {
            std::panic::set_hook(Box::new(|panic| {
                let place = panic.location().map(ToString::to_string).unwrap_or_default();
                let payload = panic.payload();
                let text = payload.downcast_ref::<String>().map(String::as_str);
                let say = text.or_else(|| payload.downcast_ref::<&str>().copied());
                let say = say.unwrap_or("without a word");
                tracing::error!(place, "a fault of ours: {say}");
            }));
        }
        set
    }
}

/// Writes each event as one line of plain text, even if file names or foreign text in it contain control characters.
#[derive(Debug)]
struct Plain<W>(W);

impl<'w, W: MakeWriter<'w>> MakeWriter<'w> for Plain<W> {
    type Writer = Plain<W::Writer>;

    fn make_writer(&'w self) -> Self::Writer {
        Plain(self.0.make_writer())
    }

    fn make_writer_for(&'w self, about: &Metadata<'_>) -> Self::Writer {
        Plain(self.0.make_writer_for(about))
    }
}

impl<W: io::Write> io::Write for Plain<W> {
    /// `event` is one complete event.
    fn write(&mut self, event: &[u8]) -> io::Result<usize> {
        let text = String::from_utf8_lossy(event.strip_suffix(b"\n").unwrap_or(event));
        if text.contains(char::is_control) {
            let plain = |c: char| match c.is_control() {
                true => c.escape_debug().to_string(),
                false => c.to_string(),
            };
            let line: String = text.chars().map(plain).collect();
            self.0.write_all(format!("{line}\n").as_bytes())?;
        } else {
            self.0.write_all(event)?;
        }
        Ok(event.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;

    #[derive(Clone, Default)]
    struct Buffer(Arc<Mutex<Vec<u8>>>);

    impl io::Write for Buffer {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn logged(log: Log) -> String {
        logged_with(log, None)
    }

    fn logged_with(log: Log, traces: Option<Traces>) -> String {
        let kept = Buffer::default();
        let to = kept.clone();
        let subscriber = log.subscriber(move || to.clone(), traces);
        tracing::subscriber::with_default(subscriber, || {
            let span = tracing::info_span!("turn", pool = "web");
            span.in_scope(|| {
                let _for_traces = tracing::info_span!(target: TARGET, "call").entered();
                tracing::info!(entry = "1-2-3", "sent");
                tracing::debug!("not told");
                tracing::info!(target: "others", "not told");
                tracing::warn!(target: "others", "told");
            });
        });
        let bytes = kept.0.lock().unwrap().clone();
        String::from_utf8(bytes).unwrap()
    }

    #[test]
    fn lines_carry_their_ids_in_both_formats() {
        let text = logged(Log { format: LogFormat::Text, detail: LogDetail::Info });
        assert!(text.contains("INFO turn{pool=\"web\"}: sent entry=\"1-2-3\""), "{text}");
        assert_eq!(text.lines().count(), 2, "{text}");
        let json = logged(Log { format: LogFormat::Json, detail: LogDetail::Info });
        let first = json.lines().next().unwrap();
        for part in [
            "\"level\":\"INFO\"",
            "\"message\":\"sent\"",
            "\"entry\":\"1-2-3\"",
            "\"pool\":\"web\"",
        ] {
            assert!(first.contains(part), "{part}: {json}");
        }
        assert_eq!(json.lines().count(), 2, "{json}");
    }

    #[test]
    fn no_name_makes_a_line_of_its_own() {
        for format in [LogFormat::Text, LogFormat::Json] {
            let (kept, log) = (Buffer::default(), Log { format, detail: LogDetail::Info });
            let to = kept.clone();
            let subscriber = log.subscriber(move || to.clone(), None);
            tracing::subscriber::with_default(subscriber, || {
                tracing::warn!(
                    path = "x\n2026-01-01 INFO forged",
                    "y\r\nINFO {} forged",
                    "\u{1b}[2K\u{85}"
                );
            });
            let text = String::from_utf8(kept.0.lock().unwrap().clone()).unwrap();
            assert_eq!(text.lines().count(), 1, "{text}");
            // JSON escapes only ASCII control characters.
            let is_control =
                |c: char| c.is_control() && (format == LogFormat::Text || c.is_ascii());
            assert!(text.ends_with('\n') && !text.trim_end().contains(is_control), "{text:?}");
        }
    }

    #[test]
    fn less_detail_quiets_others_too() {
        let text = logged(Log { format: LogFormat::Text, detail: LogDetail::Error });
        assert_eq!(text, "");
    }

    #[test]
    fn the_audit_is_copied_whatever_the_detail() {
        let kept = Buffer::default();
        let to = kept.clone();
        let log = Log { format: LogFormat::Json, detail: LogDetail::Error };
        tracing::subscriber::with_default(log.subscriber(move || to.clone(), None), || {
            tracing::info!(target: AUDIT, who = "ann", "audited");
        });
        let text = String::from_utf8(kept.0.lock().unwrap().clone()).unwrap();
        assert!(
            text.contains("\"target\":\"audit\"") && text.contains("\"who\":\"ann\""),
            "{text}"
        );
    }

    #[test]
    fn traces_change_no_line_and_lines_change_no_trace() {
        for (format, detail) in [
            (LogFormat::Text, LogDetail::Info),
            (LogFormat::Json, LogDetail::Info),
            (LogFormat::Json, LogDetail::Error),
        ] {
            let traces = Traces::new(1);
            let log = Log { format, detail };
            let without = logged(log);
            let with = logged_with(log, Some(traces.clone()));
            // Compare everything except the leading times.
            let parts = |text: &str| text.lines().map(str::len).collect::<Vec<_>>();
            assert_eq!(parts(&with), parts(&without), "{with} {without}");
            let (spans, _) = traces.take(9);
            let [call, turn] = &spans[..] else { panic!("{spans:?}") };
            assert_eq!((call.name, call.parent), ("call", Some(turn.id)));
            assert_eq!((call.events.len(), &*call.events[0].say), (1, "sent"));
        }
    }
}
