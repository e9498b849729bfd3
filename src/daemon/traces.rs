//! Exports traces to a collector, periodically and at the end. If the collector is down, the daemon logs it once and
//! continues.

use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinHandle;

use crate::adapters::otlp::Collector;
use crate::telemetry::Traces;

/// Export interval.
const EVERY: Duration = Duration::from_secs(2);
/// Spans of one request.
// 512: some hundred kilobytes, with the events of busy turns.
const BATCH: usize = 512;
/// Timeout of the last export: the process is about to end.
const LAST: Duration = Duration::from_millis(500);

/// A running exporter, until it is stopped.
#[derive(Debug)]
pub(super) struct TraceExport {
    carrier: Arc<Carrier>,
    task: JoinHandle<()>,
}

#[derive(Debug)]
struct Carrier {
    traces: Traces,
    collector: Collector,
    /// Why the last batch failed.
    away: tokio::sync::Mutex<Option<String>>,
}

impl TraceExport {
    pub fn begin(traces: Traces, collector: Collector) -> Self {
        let carrier = Arc::new(Carrier { traces, collector, away: tokio::sync::Mutex::default() });
        let carries = Arc::clone(&carrier);
        let task = tokio::spawn(async move {
            loop {
                tokio::time::sleep(EVERY).await;
                carries.carry().await;
            }
        });
        Self { carrier, task }
    }

    pub async fn end(self) {
        self.task.abort();
        // If the collector does not take the last spans in time, they are lost.
        let _either = tokio::time::timeout(LAST, self.carrier.carry()).await;
    }
}

impl Carrier {
    /// Sends all buffered spans, batch by batch.
    async fn carry(&self) {
        let mut away = self.away.lock().await;
        loop {
            let (spans, lost) = self.traces.take(BATCH);
            if lost > 0 {
                tracing::warn!(lost, "traces came quicker than they were taken");
            }
            if spans.is_empty() {
                return;
            }
            match self.collector.send(&spans).await {
                Ok(()) => {
                    if away.take().is_some() {
                        tracing::info!("the trace collector accepts spans again");
                    }
                }
                Err(not) => {
                    let say = not.to_string();
                    if away.as_deref() != Some(say.as_str()) {
                        tracing::warn!(%say, "traces are lost while their collector is away");
                        *away = Some(say);
                    }
                    return;
                }
            }
        }
    }
}
