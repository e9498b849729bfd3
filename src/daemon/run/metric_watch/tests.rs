use tokio::sync::watch;

use super::*;
use crate::ambient::Clock;
use crate::api::v1::pool::PoolDocuments;
use crate::daemon::run::test_clock::{TestClock, settle};

const EVERY: Span = Span::seconds(15);

type Answer = Result<Decimal, MetricFault>;

/// Answers the same to every query; `None`: it does not answer at all.
#[derive(Debug, Clone)]
struct TestServer {
    answer: watch::Sender<Option<Answer>>,
    asked: Arc<Mutex<Vec<String>>>,
}

impl TestServer {
    fn new(answer: Option<Answer>) -> Self {
        Self { answer: watch::Sender::new(answer), asked: Arc::default() }
    }

    fn answers(&self, answer: Option<Answer>) {
        self.answer.send_replace(answer);
    }

    fn asked(&self) -> Vec<String> {
        std::mem::take(&mut self.asked.lock().unwrap())
    }
}

impl ReadMetric for TestServer {
    async fn value(&self, query: &str, _: Time) -> Answer {
        self.asked.lock().unwrap().push(query.to_owned());
        let mut answer = self.answer.subscribe();
        let found = answer.wait_for(Option::is_some).await.unwrap().clone();
        found.unwrap()
    }
}

fn value(number: f64) -> Option<Answer> {
    Some(Ok(Decimal::new(number).unwrap()))
}

fn fault(reason: MetricFaultReason) -> Option<Answer> {
    Some(Err(MetricFault::new(reason, "so")))
}

/// A pool with one metric profile for each pair of a server and a query.
fn pool(name: &str, metrics: &[(&str, &str)]) -> Policy {
    let profile = |(n, (server, query)): (usize, &(&str, &str))| {
        format!("  - {{name: p{n}, metric: {{server: {server}, query: {query}, target: 10}}}}")
    };
    let profiles = metrics.iter().enumerate().map(profile).collect::<Vec<_>>().join("\n");
    let text = format!(
        "apiVersion: poolkeeper/v1\nkind: Pool\nname: {name}\nscaleSet: /subscriptions/s/resourceGroups/g/providers/Microsoft.Compute/virtualMachineScaleSets/{name}\n\
         replicas:\n  min: 1\n  max: 20\n  profiles:\n{profiles}\n"
    );
    let (mut policies, faults) = PoolDocuments::default().read(&text, None);
    assert!(faults.is_empty(), "{faults:?}");
    policies.pop().unwrap()
}

struct House {
    clock: TestClock,
    main: TestServer,
    slow: TestServer,
    watch: MetricWatch<TestServer, TestClock>,
    news: Arc<Mutex<Vec<String>>>,
}

impl House {
    fn new(answer: Option<Answer>) -> Self {
        let (clock, main, slow) =
            (TestClock::new(), TestServer::new(answer), TestServer::new(None));
        let servers = [("main", &main), ("slow", &slow)];
        let servers =
            servers.map(|(name, of)| (name.into(), WatchedServer::new(of.clone(), EVERY)));
        let news: Arc<Mutex<Vec<String>>> = Arc::default();
        let told = Arc::clone(&news);
        let tell: PoolNews = Box::new(move |pool| told.lock().unwrap().push(pool.to_string()));
        let watch = MetricWatch::new(BTreeMap::from(servers), clock.clone(), tell);
        Self { clock, main, slow, watch, news }
    }

    async fn watch(&self, policy: &Policy) {
        self.watch.watch(&policy.name, policy);
        settle().await;
    }

    /// Each fact: the profile, the value and its age in seconds.
    fn facts(&self, pool: &str) -> Vec<(String, Option<f64>, i64)> {
        let age = |at: Time| self.clock.now().since(at).millis() / 1_000;
        let facts = self.watch.facts(&PoolName::new(pool));
        facts
            .iter()
            .map(|fact| (fact.profile.to_string(), fact.value.map(Decimal::get), age(fact.at)))
            .collect()
    }

    fn news(&self) -> Vec<String> {
        std::mem::take(&mut self.news.lock().unwrap())
    }
}

fn p0(value: Option<f64>, age: i64) -> Vec<(String, Option<f64>, i64)> {
    vec![("p0".to_owned(), value, age)]
}

#[tokio::test]
async fn the_last_value_stays_with_the_time_it_was_asked_for() {
    use MetricFaultReason::{NoData, Unreachable};
    let house = House::new(value(7.0));
    assert_eq!(house.facts("web"), [], "nothing is watched");
    house.watch(&pool("web", &[("main", "a")])).await;
    assert_eq!(house.facts("web"), p0(Some(7.0), 0));
    assert_eq!(house.main.asked(), ["a"]);
    house.clock.pass(Span::seconds(14)).await;
    assert_eq!((house.facts("web"), house.main.asked().len()), (p0(Some(7.0), 14), 0));
    house.main.answers(value(9.0));
    house.clock.pass(Span::seconds(1)).await;
    assert_eq!((house.facts("web"), house.main.asked().len()), (p0(Some(9.0), 0), 1));
    for reason in [Unreachable, NoData, NoData] {
        house.main.answers(fault(reason));
        house.clock.pass(EVERY).await;
        assert!(house.watch.readings()[0].failing);
    }
    assert_eq!(house.facts("web"), p0(Some(9.0), 45), "it expires by its age alone");
    house.main.answers(value(3.0));
    house.clock.pass(EVERY).await;
    assert_eq!(house.facts("web"), p0(Some(3.0), 0));
    assert!(!house.watch.readings()[0].failing);
    let counts = house.watch.counts();
    let [main, slow] = &counts[..] else { panic!("{counts:?}") };
    assert_eq!((main.asked, slow.asked), (6, 0));
    assert_eq!(main.failed, BTreeMap::from([(Unreachable, 1), (NoData, 2)]));
}

#[tokio::test]
async fn without_any_value_a_fault_is_a_fact() {
    let house = House::new(None);
    house.watch(&pool("web", &[("main", "a")])).await;
    assert_eq!(house.facts("web"), [], "it was asked, and has not answered yet");
    house.main.answers(fault(MetricFaultReason::SeveralSeries));
    settle().await;
    assert_eq!(house.facts("web"), p0(None, 0));
}

#[tokio::test]
async fn a_server_that_does_not_answer_delays_no_other() {
    let house = House::new(value(7.0));
    let many: Vec<String> = (0..20).map(|n| format!("q{n}")).collect();
    let slow: Vec<(&str, &str)> = many.iter().map(|query| ("slow", query.as_str())).collect();
    house.watch(&pool("late", &slow)).await;
    house.watch(&pool("web", &[("main", "a")])).await;
    for _ in 0..3 {
        assert_eq!((house.facts("web"), house.facts("late")), (p0(Some(7.0), 0), Vec::new()));
        house.clock.pass(EVERY).await;
    }
    assert_eq!(house.slow.asked().len(), AT_ONCE, "no more at the same time");
    house.slow.answers(value(1.0));
    settle().await;
    assert_eq!(house.facts("late").len(), 20);
}

#[tokio::test]
async fn the_same_query_of_two_pools_is_asked_once() {
    let house = House::new(value(7.0));
    house.watch(&pool("a", &[("main", "x"), ("main", "x"), ("main", "y")])).await;
    house.watch(&pool("b", &[("main", "x")])).await;
    assert_eq!(house.main.asked(), ["x", "y"]);
    assert_eq!((house.facts("a").len(), house.facts("b").len()), (3, 1));
    house.watch.forget(&PoolName::new("a"));
    house.clock.pass(EVERY).await;
    assert_eq!(house.main.asked(), ["x"]);
    // An edited query begins anew; the old one ends.
    house.main.answers(None);
    house.watch(&pool("b", &[("main", "z")])).await;
    assert_eq!((house.main.asked(), house.facts("b")), (vec!["z".to_owned()], Vec::new()));
    house.watch(&pool("b", &[("elsewhere", "z")])).await;
    assert_eq!(house.facts("b"), [], "the settings have no such server");
    house.watch(&pool("b", &[("main", "z")])).await;
    house.watch.clear();
    house.main.answers(value(1.0));
    house.main.asked();
    house.clock.pass(EVERY).await;
    assert_eq!((house.main.asked(), house.facts("b")), (Vec::new(), Vec::new()));
}

#[tokio::test]
async fn a_value_that_moved_is_news_for_those_who_read_it() {
    let house = House::new(value(100.0));
    house.watch(&pool("a", &[("main", "x")])).await;
    house.watch(&pool("b", &[("main", "x")])).await;
    assert_eq!(house.news(), ["a"], "b comes when the value is known, and its turn follows anyway");
    house.facts("a");
    house.facts("b");
    for (number, told) in [(104.0, vec![]), (94.0, vec!["a", "b"]), (100.0, vec![])] {
        house.main.answers(value(number));
        house.clock.pass(EVERY).await;
        assert_eq!(house.news(), told, "{number}");
    }
    house.main.answers(value(200.0));
    house.clock.pass(EVERY).await;
    house.facts("b");
    house.news();
    house.clock.pass(EVERY).await;
    assert_eq!(house.news(), ["a"], "until its turn has read it");
    house.main.answers(fault(MetricFaultReason::Timeout));
    house.clock.pass(EVERY).await;
    assert_eq!(house.news(), Vec::<String>::new());
}

#[tokio::test]
async fn dropping_it_ends_its_tasks() {
    let House { clock, main, watch, .. } = House::new(value(7.0));
    let policy = pool("web", &[("main", "a")]);
    watch.watch(&policy.name, &policy);
    settle().await;
    assert_eq!(main.asked(), ["a"]);
    drop(watch);
    clock.pass(EVERY).await;
    assert_eq!(main.asked(), Vec::<String>::new());
}
