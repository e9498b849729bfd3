//! The port that reads a metric, and why a query has no value.

use crate::model::gate::PartialAnswer;
use crate::model::size::Decimal;
use crate::model::time::{Span, Time};
use crate::model::vocabulary::vocabulary;

/// A server of metrics.
pub trait ReadMetric {
    /// The one number that a query has at this time. One request, without retries.
    fn value(
        &self,
        query: &str,
        at: Time,
    ) -> impl Future<Output = Result<Decimal, MetricFault>> + Send;
}

/// What the numbers of a gate are asked by.
#[derive(Debug, Clone, Copy)]
pub struct SeriesQuestion<'a> {
    pub query: &'a str,
    pub at: Time,
    /// Counts if the server's own limit is longer.
    pub timeout: Span,
    pub partial: PartialAnswer,
}

/// A server of metrics, for a query that may have several series.
pub trait ReadSeries {
    /// The number of each series, or that of a scalar. No series is no fault. One request, without retries.
    fn values(
        &self,
        of: SeriesQuestion<'_>,
    ) -> impl Future<Output = Result<Vec<Decimal>, MetricFault>> + Send;
}

vocabulary! {
    pub enum MetricFaultReason {
        Unreachable = "unreachable",
        Timeout = "timeout",
        /// A file with a credential or a certificate of ours is unusable.
        Credentials = "credentials",
        /// The server does not accept our credentials.
        Denied = "denied",
        /// The server fails or is overloaded.
        Unavailable = "unavailable",
        /// Another program answers.
        NotPrometheus = "notPrometheus",
        BadQuery = "badQuery",
        NoData = "noData",
        SeveralSeries = "severalSeries",
        /// NaN or infinite.
        NotFinite = "notFinite",
        /// A text, a histogram or values over time.
        NotNumber = "notNumber",
        /// Some of the data is missing in the answer.
        Partial = "partial",
        TooLarge = "tooLarge",
    }
}

impl MetricFaultReason {
    /// It says nothing of the query: every other one to this server fails alike.
    pub const fn is_of_server(self) -> bool {
        matches!(
            self,
            Self::Unreachable
                | Self::Credentials
                | Self::Denied
                | Self::Unavailable
                | Self::NotPrometheus
        )
    }
}

/// Why a query has no value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{say}")]
pub struct MetricFault {
    pub reason: MetricFaultReason,
    /// State, cause and remedy. It has no secret.
    pub say: Box<str>,
}

impl MetricFault {
    pub fn new(reason: MetricFaultReason, say: impl Into<Box<str>>) -> Self {
        Self { reason, say: say.into() }
    }

    /// A query without series.
    pub fn no_data() -> Self {
        let say = "the query has no series now; if it filters by a comparison, use bool, and use `or vector(0)` if none means zero";
        Self::new(MetricFaultReason::NoData, say)
    }

    /// A query with several series, where one is needed.
    pub fn several(series: usize) -> Self {
        let say =
            format!("the query has {series} series; aggregate them to one, for example with sum()");
        Self::new(MetricFaultReason::SeveralSeries, say)
    }
}
