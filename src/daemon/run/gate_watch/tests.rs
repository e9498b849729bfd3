use super::*;
use crate::ambient::Clock;
use crate::api::v1::pool::PoolDocuments;
use crate::daemon::run::test_clock::{TestClock, settle};
use crate::model::time::Span;

/// Says the same of every gate until told otherwise, and what it was asked.
#[derive(Debug, Clone)]
struct TestMeter {
    says: Arc<Mutex<Verdict>>,
    asked: Arc<Mutex<Vec<String>>>,
}

impl MeasureGate for TestMeter {
    async fn measure(&self, of: GateQuestion<'_>) -> GateReading {
        self.asked.lock().unwrap().push(format!("{}/{}", of.pool, of.gate));
        GateReading::new(*self.says.lock().unwrap(), "found")
    }
}

struct House {
    clock: TestClock,
    meter: TestMeter,
    watch: GateWatch<TestMeter, TestClock>,
    news: Arc<Mutex<u32>>,
    since: Time,
}

/// Gates a and b; both need two passes, and tolerate no failure.
fn policy(interval: &str) -> Policy {
    let gate = |name: &str| {
        format!(
            "- {{name: {name}, command: {{run: smoke}}, interval: {interval}, initialDelay: 0s, need: 2, failures: 0}}\n"
        )
    };
    let text = format!(
        "apiVersion: poolkeeper/v1\nkind: Pool\nname: web\nscaleSet: /subscriptions/s/resourceGroups/g/providers/Microsoft.Compute/virtualMachineScaleSets/web\n\
         replicas: {{count: 3}}\ngates:\n{}{}",
        gate("a"),
        gate("b")
    );
    let (mut policies, faults) = PoolDocuments::default().read(&text, None);
    assert!(faults.is_empty(), "{faults:?}");
    policies.pop().unwrap()
}

fn web() -> PoolName {
    PoolName::new("web")
}

impl House {
    fn new(says: Verdict) -> Self {
        let (clock, news): (_, Arc<Mutex<u32>>) = (TestClock::new(), Arc::default());
        let told = Arc::clone(&news);
        let tell: PoolNews = Box::new(move |_| *told.lock().unwrap() += 1);
        let meter = TestMeter { says: Arc::new(Mutex::new(says)), asked: Arc::default() };
        let watch = GateWatch::new(meter.clone(), clock.clone(), tell);
        watch.watch(&web(), &policy("30s"));
        let since = clock.now();
        Self { clock, meter, watch, news, since }
    }

    /// The last plan asks these gates.
    async fn ask(&self, names: &[&str], soak: Span) {
        let report = |name: &&str| GateReport {
            name: (*name).into(),
            since: self.since,
            until: self.since.plus(soak),
            question: GateQuestionKind::Checkpoint,
            verdict: Verdict::Unknown,
            at: None,
            say: None,
        };
        self.watch.ask(&web(), &names.iter().map(report).collect::<Vec<_>>());
        settle().await;
    }

    async fn pass(&self, seconds: i64) {
        self.clock.pass(Span::seconds(seconds)).await;
    }

    fn asked(&self) -> Vec<String> {
        std::mem::take(&mut self.meter.asked.lock().unwrap())
    }

    fn news(&self) -> u32 {
        std::mem::take(&mut self.news.lock().unwrap())
    }

    fn says(&self) -> Vec<(String, Verdict)> {
        let facts = self.watch.facts(&web());
        facts.into_iter().map(|gate| (gate.name.to_string(), gate.verdict)).collect()
    }
}

#[tokio::test]
async fn only_what_is_asked_is_measured_and_only_at_its_interval() {
    let house = House::new(Verdict::Pass);
    house.pass(60).await;
    assert!(house.asked().is_empty());
    house.ask(&["a"], Span::ZERO).await;
    assert_eq!(house.asked(), ["web/a"]);
    house.pass(29).await;
    assert!(house.asked().is_empty());
    house.pass(1).await;
    assert_eq!(house.asked(), ["web/a"]);
    // A plan that asks the same goes on.
    house.ask(&["a", "b"], Span::ZERO).await;
    assert_eq!(house.asked(), ["web/b"]);
    house.ask(&[], Span::ZERO).await;
    house.pass(300).await;
    assert!(house.asked().is_empty());
    assert!(house.says().is_empty());
}

#[tokio::test]
async fn passes_add_up_while_the_question_is_the_same() {
    let house = House::new(Verdict::Pass);
    house.ask(&["a"], Span::ZERO).await;
    assert_eq!(house.says(), [("a".to_owned(), Verdict::Unknown)], "one of two");
    house.pass(30).await;
    house.ask(&["a"], Span::ZERO).await;
    assert_eq!(house.says(), [("a".to_owned(), Verdict::Pass)]);
    // Another definition has no passes yet.
    house.watch.watch(&web(), &policy("1m"));
    house.ask(&["a"], Span::ZERO).await;
    assert_eq!(house.says(), [("a".to_owned(), Verdict::Unknown)]);
    // Not asked in between: what passed before is another question.
    house.pass(60).await;
    assert_eq!(house.says(), [("a".to_owned(), Verdict::Pass)]);
    house.ask(&[], Span::ZERO).await;
    house.ask(&["a"], Span::ZERO).await;
    assert_eq!(house.says(), [("a".to_owned(), Verdict::Unknown)]);
}

#[tokio::test]
async fn a_turn_is_woken_by_what_changes_its_decision() {
    let house = House::new(Verdict::Pass);
    house.ask(&["a"], Span::seconds(100)).await;
    assert_eq!((house.news(), house.says().len()), (1, 1), "the first measurement");
    house.pass(30).await;
    assert_eq!(house.news(), 1, "two passed");
    house.says();
    for _ in 0..2 {
        house.pass(30).await;
        assert_eq!(house.news(), 0, "it passed already, and before the soak ended");
    }
    house.pass(30).await;
    assert_eq!(house.news(), 1, "the first pass after the soak");
    house.says();
    house.pass(30).await;
    assert_eq!(house.news(), 0);
    *house.meter.says.lock().unwrap() = Verdict::Fail;
    house.pass(30).await;
    assert_eq!((house.news(), house.says()), (1, vec![("a".to_owned(), Verdict::Fail)]));
}

#[tokio::test]
async fn a_pool_that_is_gone_is_not_measured() {
    let house = House::new(Verdict::Unknown);
    house.ask(&["a", "b"], Span::ZERO).await;
    assert_eq!(house.asked().len(), 2);
    let counts = house.watch.counts();
    assert_eq!(counts.len(), 2);
    assert_eq!(counts[0].verdicts, BTreeMap::from([(Verdict::Unknown, 1)]));
    house.watch.forget(&web());
    house.pass(120).await;
    assert!(house.asked().is_empty());
    assert!(house.watch.counts().is_empty());
}
