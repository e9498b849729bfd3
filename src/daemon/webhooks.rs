//! The webhooks of the settings: how to send to each, and what came of it.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use futures_util::future::join_all;
use tokio::sync::Notify;

use crate::act::AskHooks;
use crate::adapters::hooks::{
    HookRequest, Template, Webhook, WebhookConfig, drain_hook, notification,
};
use crate::memory::PendingNotice;
use crate::model::backend::HookOrder;
use crate::model::hook::HookAnswer;
use crate::model::time::Time;
use crate::model::vocabulary::vocabulary;

vocabulary! {
    /// What became of an attempt, or of a notice that is given up.
    pub(super) enum DeliveryOutcome {
        Delivered = "delivered",
        /// The receiver asked for another attempt later.
        Working = "working",
        Retried = "retried",
        Refused = "refused",
        Expired = "expired",
        /// Too many waited, or the settings have no such webhook.
        Dropped = "dropped",
    }
}

/// How often each outcome came, for one webhook.
pub(super) type DeliveryCounts = BTreeMap<DeliveryOutcome, u64>;

/// The webhooks of the settings.
#[derive(Debug)]
pub struct Webhooks {
    all: BTreeMap<Box<str>, NotifiedWebhook>,
    news: Notify,
    counts: Mutex<BTreeMap<Box<str>, DeliveryCounts>>,
}

#[derive(Debug)]
struct NotifiedWebhook {
    webhook: Webhook,
    template: Option<Template>,
}

impl Webhooks {
    pub(super) fn new(
        settings: &BTreeMap<Box<str>, WebhookConfig>,
        trusted: Option<&Vec<u8>>,
    ) -> Self {
        let each = settings.iter().map(|(name, config)| {
            let webhook = Webhook::new(config, trusted.cloned());
            (name.clone(), NotifiedWebhook { webhook, template: config.template.clone() })
        });
        let counts = settings.keys().map(|name| (name.clone(), DeliveryCounts::new())).collect();
        Self { all: each.collect(), news: Notify::new(), counts: Mutex::new(counts) }
    }

    /// A turn stored a notice.
    pub(super) fn has_news(&self) {
        self.news.notify_one();
    }

    pub(super) fn counts(&self) -> BTreeMap<Box<str>, DeliveryCounts> {
        self.counted().clone()
    }

    fn counted(&self) -> MutexGuard<'_, BTreeMap<Box<str>, DeliveryCounts>> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A webhook that the settings lack is not counted, so pool files cannot make up labels.
    pub(super) fn count(&self, webhook: &str, outcome: DeliveryOutcome) {
        if let Some(counts) = self.counted().get_mut(webhook) {
            *counts.entry(outcome).or_default() += 1;
        }
    }

    pub(super) fn has(&self, webhook: &str) -> bool {
        self.all.contains_key(webhook)
    }

    /// Until a turn stores a notice.
    pub(super) async fn news(&self) {
        self.news.notified().await;
    }

    pub(super) async fn attempt(
        &self,
        pending: &PendingNotice,
        attempt: u32,
        at: Time,
    ) -> HookAnswer {
        let Some(to) = self.all.get(&pending.delivery.webhook) else {
            return no_such_webhook();
        };
        let notice = &pending.delivery.notice;
        let body = notification(&pending.pool, notice, to.template.as_ref());
        let (delivery, body) = (&*notice.id, body.as_bytes());
        to.webhook.send(HookRequest { delivery, attempt, body, at, deadline: None }).await
    }
}

fn no_such_webhook() -> HookAnswer {
    HookAnswer::Refused { say: "the settings have no such webhook".to_owned() }
}

impl AskHooks for Webhooks {
    async fn ask(&self, orders: &[HookOrder<'_>]) -> Vec<HookAnswer> {
        join_all(orders.iter().map(|order| self.ask_one(order))).await
    }
}

impl Webhooks {
    async fn ask_one(&self, order: &HookOrder<'_>) -> HookAnswer {
        let (name, attempt, at) = (&order.call.webhook, order.call.attempts, order.at);
        let Some(to) = self.all.get(name) else { return no_such_webhook() };
        let (delivery, body) = drain_hook(order);
        let (delivery, body, deadline) = (&*delivery, body.as_bytes(), order.deadline);
        let answer = to.webhook.send(HookRequest { delivery, attempt, body, at, deadline }).await;
        self.count(
            name,
            match &answer {
                HookAnswer::Done => DeliveryOutcome::Delivered,
                HookAnswer::Working { .. } => DeliveryOutcome::Working,
                HookAnswer::Retry { .. } => DeliveryOutcome::Retried,
                HookAnswer::Refused { .. } => DeliveryOutcome::Refused,
            },
        );
        log(order, delivery, &answer);
        answer
    }
}

/// The first failure is a warning, since more may come for as long as a drain takes.
fn log(order: &HookOrder<'_>, delivery: &str, answer: &HookAnswer) {
    let (pool, machine) = (order.pool.as_str(), order.row.id.as_str());
    let (webhook, attempt, phase) =
        (&*order.call.webhook, order.call.attempts, order.call.phase.name());
    let (warns, text) = match answer {
        HookAnswer::Done => (false, "a hook agrees".to_owned()),
        HookAnswer::Working { say, after } => {
            (false, format!("a hook works: {say}; it is asked again in {after}"))
        }
        HookAnswer::Retry { say, .. } => {
            (attempt == 1, format!("a hook is not reached: {say}; retrying"))
        }
        HookAnswer::Refused { say } => (true, format!("a hook refuses: {say}")),
    };
    if warns {
        tracing::warn!(pool, machine, webhook, phase, delivery, attempt, "{text}");
    } else {
        tracing::debug!(pool, machine, webhook, phase, delivery, attempt, "{text}");
    }
}
