//! A clock for tests of what waits.

use tokio::sync::watch;

use crate::ambient::{Clock, Sleep};
use crate::model::time::{Span, Time};

/// Stands until the test lets time pass.
#[derive(Debug, Clone)]
pub(super) struct TestClock(watch::Sender<Time>);

impl TestClock {
    pub fn new() -> Self {
        Self(watch::Sender::new(Time::from_millis(1_800_000_000_000)))
    }

    pub async fn pass(&self, span: Span) {
        self.0.send_modify(|now| *now = now.plus(span));
        settle().await;
    }
}

impl Clock for TestClock {
    fn now(&self) -> Time {
        *self.0.borrow()
    }
}

impl Sleep for TestClock {
    async fn sleep_until(&self, at: Time) {
        let _reached = self.0.subscribe().wait_for(|now| *now >= at).await.is_ok();
    }
}

/// Other tasks go as far as they can.
pub(super) async fn settle() {
    for _ in 0..50 {
        tokio::task::yield_now().await;
    }
}
