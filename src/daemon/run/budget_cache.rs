//! The disruption budgets of clusters that can never allow a disruption, kept for a while: the turns of a rollout are
//! many, and such a budget changes when a person changes it.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use crate::daemon::diagnose::budgets_unread;
use crate::model::cluster::Budget;
use crate::model::facts::BudgetFact;
use crate::model::ids::ClusterName;
use crate::model::journal::{Refusal, Refused};
use crate::model::time::{Span, Time};

/// How long an answer is used.
// 5 min: as often as a pool at rest is looked at, and a drain makes a few hundred calls within that.
const EXPIRES: Span = Span::minutes(5);

type BudgetsRead = Result<Vec<BudgetFact>, Box<str>>;

#[derive(Debug, Default)]
pub(super) struct BudgetCache(Mutex<BTreeMap<ClusterName, BudgetReading>>);

#[derive(Debug, Clone)]
struct BudgetReading {
    /// `None`: no answer came, so the next turn asks again.
    at: Option<Time>,
    budgets: BudgetsRead,
}

impl BudgetCache {
    /// `ask` is run only if no answer is young enough. A refusal is logged once, until an answer comes.
    pub async fn read(
        &self,
        cluster: &ClusterName,
        now: Time,
        ask: impl Future<Output = Result<Vec<Budget>, Refused>> + Send,
    ) -> BudgetsRead {
        let known = self.with(|known| known.get(cluster).cloned());
        if let Some(BudgetReading { at: Some(at), budgets }) = &known
            && now.since(*at) < EXPIRES
        {
            return budgets.clone();
        }
        let answer = ask.await;
        let is_answer = answer.as_ref().err().is_none_or(|no| no.refusal == Refusal::Forbidden);
        let budgets = answer.map(|all| never_allowing(&all)).map_err(|no| budgets_unread(&no));
        let was_unread = known.is_some_and(|known| known.budgets.is_err());
        if let Err(why) = budgets.as_ref().map_err(Box::as_ref)
            && !was_unread
        {
            tracing::info!(cluster = cluster.as_str(), "disruption budgets are not read: {why}");
        }
        let reading = BudgetReading { at: is_answer.then_some(now), budgets: budgets.clone() };
        self.with(|known| known.insert(cluster.clone(), reading));
        budgets
    }

    fn with<T>(&self, does: impl FnOnce(&mut BTreeMap<ClusterName, BudgetReading>) -> T) -> T {
        does(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

fn never_allowing(all: &[Budget]) -> Vec<BudgetFact> {
    let fresh = all.iter().filter(|of| !of.stale).map(BudgetFact::from);
    let mut never: Vec<BudgetFact> = fresh.filter(BudgetFact::never_allows).collect();
    never.sort_by(|one, other| one.name.cmp(&other.name));
    never
}

#[cfg(test)]
mod tests {
    use std::future::ready;

    use super::*;
    use crate::model::cluster::LabelSelector;

    fn budget(name: &str, [healthy, desired, expected, allowed]: [u32; 4]) -> Budget {
        Budget {
            namespace: "shop".into(),
            name: name.into(),
            selector: LabelSelector::default(),
            healthy,
            desired,
            allowed,
            expected,
            stale: name == "stale",
        }
    }

    fn refused(refusal: Refusal) -> Refused {
        Refused { message: Some("no".into()), ..Refused::plain(refusal) }
    }

    #[tokio::test]
    async fn those_that_never_allow_are_kept_for_five_minutes() {
        let (cache, prod) = (BudgetCache::default(), ClusterName::new("prod"));
        let at = |minutes| Time::from_millis(0).plus(Span::minutes(minutes));
        let all = vec![
            budget("zoo", [3, 3, 3, 0]),
            budget("db", [1, 1, 1, 0]),
            budget("web", [3, 2, 3, 1]),
            budget("short", [2, 2, 3, 0]),
            budget("stale", [1, 1, 1, 0]),
            budget("empty", [0, 0, 0, 0]),
            budget("bare", [2, 0, 0, 0]),
        ];
        let first = cache.read(&prod, at(0), ready(Ok(all))).await.unwrap();
        let names: Vec<&str> = first.iter().map(|of| &*of.name).collect();
        assert_eq!(names, ["shop/bare", "shop/db", "shop/zoo"]);
        assert_eq!(cache.read(&prod, at(4), ready(Ok(Vec::new()))).await, Ok(first));
        let test = ClusterName::new("test");
        assert_eq!(cache.read(&test, at(4), ready(Ok(Vec::new()))).await, Ok(Vec::new()));
        assert_eq!(cache.read(&prod, at(5), ready(Ok(Vec::new()))).await, Ok(Vec::new()));
    }

    #[tokio::test]
    async fn a_missing_right_is_an_answer_and_silence_is_none() {
        let (cache, prod) = (BudgetCache::default(), ClusterName::new("prod"));
        let now = Time::from_millis(0);
        let silent = cache.read(&prod, now, ready(Err(refused(Refusal::Unclear)))).await;
        assert_eq!(silent.unwrap_err().as_ref(), "no");
        let no = cache.read(&prod, now, ready(Err(refused(Refusal::Forbidden)))).await.unwrap_err();
        assert_eq!(&*no, "no; allow list poddisruptionbudgets.policy to have them named");
        assert_eq!(cache.read(&prod, now, ready(Ok(Vec::new()))).await, Err(no));
    }
}
