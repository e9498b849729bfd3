use std::pin::pin;
use std::task::{Context, Waker};

use super::*;
use crate::model::cluster::{NodeMark, NodeTaints};
use crate::model::ids::{EntryId, InstanceId, NodeName, PoolName, Revision, ScaleSetId, VmId};
use crate::model::inventory::{Instance, Orchestration, SetReading};
use crate::model::journal::Refusal;
use crate::model::machine::{Evidence, Protection};
use crate::model::policy::Draft;

const SET: &str = "/subscriptions/0000-AA/resourceGroups/Web-RG/providers/Microsoft.Compute/virtualMachineScaleSets/Web";
const UNIFORM: &str = "azure:///subscriptions/0000-aa/resourceGroups/web-rg/providers/Microsoft.Compute/virtualMachineScaleSets/Web/virtualMachines/";
const FLEXIBLE: &str = "azure:///subscriptions/0000-aa/resourceGroups/web-rg/providers/Microsoft.Compute/virtualMachines/";

fn at(seconds: i64) -> Time {
    Time::from_millis(seconds * 1_000)
}

fn node(name: &str, provider_id: String) -> ClusterNode {
    ClusterNode {
        name: NodeName::new(name),
        version: "1".into(),
        provider_id: Some(provider_id.into()),
        created: at(1_000),
        ready: NodeReady::True,
        since: Some(at(1_100)),
        starting: false,
        cordoned: false,
        excluded: false,
        autoscaler_removes: false,
        do_not_disrupt: false,
        mark: None,
        taints: NodeTaints::default(),
        shield: None,
    }
}

fn listing(orchestration: Orchestration, rows: &[(&str, Condition)]) -> Inventory {
    let row = |(id, condition): &(&str, Condition)| Instance {
        id: InstanceId::new(id),
        vm: Some(VmId::new(format!("vm-{id}"))),
        zone: None,
        created: at(900),
        imaged: None,
        revision: None,
        evidence: Evidence::Model,
        condition: *condition,
        since: None,
        protection: Protection::None,
        workloads: 0,
        node: None,
        joined: None,
        unreachable_since: None,
        marked: false,
        autoscaler_removes: false,
    };
    let set = SetReading::new(Revision::new("r"), 3, at(2_000));
    let set = SetReading { orchestration, ..set };
    Inventory { set, instances: rows.iter().map(row).collect(), gaps: Vec::new() }
}

fn draft() -> Draft {
    Draft::with_defaults(PoolName::new("web"), ScaleSetId::new(SET))
}

fn pool() -> Policy {
    Policy::build(draft()).unwrap()
}

fn joined(mut inventory: Inventory, nodes: &[ClusterNode]) -> Vec<(Option<String>, Condition)> {
    join_nodes(&mut inventory, &pool(), Ok(nodes), NodeHealth::Counts);
    let each = inventory.instances.iter();
    each.map(|row| (row.node.as_ref().map(ToString::to_string), row.condition)).collect()
}

#[test]
fn nodes_meet_machines_of_both_kinds_of_set_whatever_their_case() {
    let uniform = listing(
        Orchestration::Uniform,
        &[("1", Condition::Ready), ("12", Condition::Ready), ("2", Condition::Ready)],
    );
    let nodes = [
        node("web00000c", format!("{UNIFORM}12").to_ascii_uppercase()),
        node("web000001", format!("{UNIFORM}1")),
        node("web_2", format!("{FLEXIBLE}2")),
        node("other", format!("{}2", UNIFORM.replace("/Web/", "/Web2/"))),
        ClusterNode { provider_id: None, ..node("bare", String::new()) },
    ];
    assert_eq!(
        joined(uniform, &nodes),
        [
            (Some("web000001".into()), Condition::Ready),
            (Some("web00000c".into()), Condition::Ready),
            (None, Condition::Provisioning),
        ]
    );
    let flexible = listing(Orchestration::Flexible, &[("web_1a2b3c4d", Condition::Ready)]);
    let nodes = [node("n1", format!("{FLEXIBLE}WEB_1a2b3c4d"))];
    assert_eq!(joined(flexible, &nodes), [(Some("n1".into()), Condition::Ready)]);
}

#[test]
fn a_machine_is_as_healthy_as_its_node() {
    use Condition::*;
    let of = |cloud, change: fn(&mut ClusterNode)| {
        let mut node = node("n", format!("{UNIFORM}1"));
        change(&mut node);
        joined(listing(Orchestration::Uniform, &[("1", cloud)]), &[node])[0].1
    };
    assert_eq!(of(Provisioning, |_| ()), Ready);
    assert_eq!(of(Failed, |_| ()), Ready, "the extension failed, and it serves");
    assert_eq!(of(Ready, |node| node.starting = true), Provisioning);
    assert_eq!(of(Ready, |node| node.ready = NodeReady::Unknown), Unready);
    assert_eq!(of(Ready, |node| node.ready = NodeReady::False), Unready);
    assert_eq!(of(Failed, |node| node.ready = NodeReady::False), Failed);
    for cloud in [Deleting, Stopped] {
        assert_eq!(of(cloud, |_| ()), cloud);
    }
}

#[test]
fn what_the_autoscaler_removes_is_left_to_it() {
    use Condition::*;
    let of = |cloud, health, mark: Option<&str>| {
        let mut node = node("n", format!("{UNIFORM}1"));
        node.autoscaler_removes = true;
        node.mark = mark.map(|pool| {
            let (pool, entry, at) = (PoolName::new(pool), EntryId::new("e"), at(1_200));
            Box::new(NodeMark { pool, entry, at, cordoned: true, again: 0, excluded: true })
        });
        let mut inventory = listing(Orchestration::Uniform, &[("1", cloud)]);
        join_nodes(&mut inventory, &pool(), Ok(&[node]), health);
        let row = &inventory.instances[0];
        (row.condition, row.autoscaler_removes)
    };
    for health in [NodeHealth::Counts, NodeHealth::Ignored] {
        assert_eq!(of(Ready, health, None), (Unknown, true));
        assert_eq!(of(Ready, health, Some("other")), (Unknown, true));
        assert_eq!(of(Ready, health, Some("web")), (Ready, false), "our drain goes on");
        assert_eq!(of(Deleting, health, None), (Deleting, true));
        assert_eq!(of(Stopped, health, None), (Stopped, true), "the cloud knows that for sure");
    }
}

#[test]
fn a_node_of_a_machine_that_had_the_id_before_is_not_its_node() {
    let old = ClusterNode { created: at(500), ..node("old", format!("{UNIFORM}1")) };
    let one = || listing(Orchestration::Uniform, &[("1", Condition::Ready)]);
    assert_eq!(joined(one(), std::slice::from_ref(&old))[0].0, None);
    let nodes = [node("new", format!("{UNIFORM}1")), old];
    assert_eq!(joined(one(), &nodes)[0].0.as_deref(), Some("new"));
    // A listing that is behind shows the machine that had the id: its node is its own.
    let mut late = one();
    late.instances[0].created = at(450);
    assert_eq!(joined(late, &nodes)[0].0.as_deref(), Some("old"));
    // The clocks may differ a little. One that fell silent before the machine was created is not its node either.
    for (since, found) in [(890, false), (900, false), (950, true)] {
        let ready = NodeReady::Unknown;
        let (created, since) = (at(860), Some(at(since)));
        let silent = ClusterNode { created, ready, since, ..node("silent", format!("{UNIFORM}1")) };
        assert_eq!(joined(one(), &[silent])[0].0.is_some(), found);
    }
}

#[test]
fn a_cluster_that_is_away_is_a_gap() {
    use Condition::*;
    let rows = [("1", Ready), ("2", Failed), ("3", Stopped), ("4", Provisioning)];
    let error = ReadError {
        refusal: Refusal::Unclear,
        code: None,
        retry_at: None,
        say: "no answer".into(),
    };
    for (health, of) in [
        (NodeHealth::Counts, [Unknown, Failed, Stopped, Unknown]),
        (NodeHealth::Ignored, [Ready, Failed, Stopped, Provisioning]),
    ] {
        let mut inventory = listing(Orchestration::Uniform, &rows);
        join_nodes(&mut inventory, &pool(), Err(&error), health);
        assert!(!inventory.saw_nodes());
        assert_eq!(inventory.instances.iter().map(|row| row.condition).collect::<Vec<_>>(), of);
    }
}

#[test]
fn a_ready_node_whose_machine_is_not_listed_is_a_gap() {
    let gap = |orchestration, stray: ClusterNode, read: i64| {
        let mut inventory = listing(orchestration, &[("1", Condition::Ready)]);
        inventory.set.read_at = at(read);
        let prefix = if orchestration == Orchestration::Uniform { UNIFORM } else { FLEXIBLE };
        let nodes = [node("n1", format!("{prefix}1")), stray];
        join_nodes(&mut inventory, &pool(), Ok(&nodes), NodeHealth::Ignored);
        let hidden = inventory.instances[0].condition == Condition::Unknown;
        assert_eq!(hidden, !inventory.saw_nodes());
        inventory.gaps.pop().map(|gap| gap.why)
    };
    let (uniform, flexible) = (Orchestration::Uniform, Orchestration::Flexible);
    let stray = || node("n2", format!("{UNIFORM}2").to_ascii_uppercase());
    let why = gap(uniform, stray(), 1_900).unwrap();
    assert!(why.starts_with("the node n2 is ready and says"), "{why}");
    assert_eq!(gap(uniform, stray(), 1_899), None, "it may be listed later");
    let unready = ClusterNode { ready: NodeReady::Unknown, ..stray() };
    assert_eq!(gap(uniform, unready, 1_900), None, "it goes after its machine");
    let (pool, entry) = (PoolName::new("web"), EntryId::new("e"));
    let mark = NodeMark { pool, entry, at: at(1_200), cordoned: true, again: 0, excluded: true };
    let drained = ClusterNode { mark: Some(Box::new(mark)), ..stray() };
    assert_eq!(gap(uniform, drained, 1_900), None, "we removed it");
    let other = node("n3", format!("{}2", UNIFORM.replace("/Web/", "/Web2/")));
    assert_eq!(gap(uniform, other, 1_900), None, "of another set");
    let flex = |name: &str| node("n4", format!("{FLEXIBLE}{name}"));
    assert!(gap(flexible, flex("WEB_12ab"), 1_900).is_some());
    assert_eq!(gap(flexible, flex("db_12ab"), 1_900), None, "of the same group");
}

#[test]
fn nodes_that_are_not_those_of_the_set_are_a_gap() {
    let gap = |orchestration, rows: &[(&str, Condition)], read: i64, nodes: &[ClusterNode]| {
        let mut inventory = listing(orchestration, rows);
        inventory.set.read_at = at(read);
        join_nodes(&mut inventory, &pool(), Ok(nodes), NodeHealth::Counts);
        let hidden = inventory.instances.iter().all(|row| row.condition == Condition::Unknown);
        assert_eq!(hidden, !inventory.saw_nodes(), "what is not seen is not judged");
        inventory.gaps.pop().map(|gap| gap.why)
    };
    let one = [("1", Condition::Ready)];
    let (uniform, flexible) = (Orchestration::Uniform, Orchestration::Flexible);
    let bare = || ClusterNode { provider_id: None, ..node("bare", String::new()) };
    assert_eq!(gap(uniform, &one, 1_799, &[bare()]), None, "it may join still");
    for of in [uniform, flexible] {
        let why = gap(of, &one, 1_800, &[bare()]).unwrap();
        assert!(why.starts_with("no node is one of its machines"), "{why}");
    }
    let starting = [("1", Condition::Provisioning)];
    assert_eq!(gap(uniform, &starting, 9_000, &[bare()]), None, "it never ran");
    let known = node("n1", format!("{UNIFORM}1"));
    assert_eq!(gap(uniform, &one, 9_000, &[known, bare()]), None);
}

struct KnownClusters(Vec<(&'static str, Option<ClusterNode>)>);

impl ReadNodes for KnownClusters {
    fn clusters(&self) -> Vec<ClusterName> {
        self.0.iter().map(|(name, _)| ClusterName::new(*name)).collect()
    }

    async fn nodes(&self, cluster: &ClusterName) -> Result<Vec<ClusterNode>, ReadError> {
        let known = self.0.iter().find(|(name, _)| *name == cluster.as_str());
        let node = known.and_then(|(_, node)| node.clone());
        let (refusal, code, retry_at) = (Refusal::Unclear, None, None);
        let away = ReadError { refusal, code, retry_at, say: "no answer".into() };
        node.map(|node| vec![node]).ok_or(away)
    }
}

#[test]
fn machines_that_are_nodes_of_a_cluster_that_the_pool_does_not_name_are_a_gap() {
    let ours = || Some(node("n1", format!("{UNIFORM}1")));
    let strange = || Some(node("other", "azure:///other".to_owned()));
    let why = |cluster: Option<&str>, health, known: Vec<_>| {
        let cluster = cluster.map(ClusterName::new);
        let policy = Policy::build(Draft { health, cluster, ..draft() }).unwrap();
        let rows = [("1", Condition::Ready), ("2", Condition::Ready)];
        let mut inventory = listing(Orchestration::Uniform, &rows);
        inventory.set.read_at = at(1_500);
        let known = KnownClusters(known);
        {
            let read = pin!(read_nodes(&known, &policy, &mut inventory));
            assert!(read.poll(&mut Context::from_waker(Waker::noop())).is_ready());
        }
        let gap = inventory.gaps.pop().map(|gap| gap.why);
        let unseen = inventory.instances.iter().all(|row| row.condition == Condition::Unknown);
        assert_eq!(unseen, gap.is_some(), "none may go");
        gap
    };
    for health in [HealthPolicy::Auto, HealthPolicy::ApplicationHealth] {
        let told = why(None, health, vec![("a", strange()), ("b", ours())]).unwrap();
        assert!(told.starts_with("1 machine is a node of the cluster b, which"), "{told}");
        assert!(told.contains("write `cluster: b`"), "{told}");
        assert_eq!(why(None, health, vec![("a", strange()), ("b", None)]), None);
    }
    let health = HealthPolicy::Auto;
    let told = why(Some("a"), health, vec![("a", strange()), ("b", ours())]).unwrap();
    assert!(told.contains("write `cluster: b`"), "{told}");
    let both = vec![("a", ours()), ("b", ours())];
    assert_eq!(why(Some("a"), health, both), None, "two names of one cluster");
}

#[test]
fn a_mark_is_the_pools_own_to_take_back() {
    let marked = |of: Option<&str>| {
        let mark = of.map(|name| NodeMark {
            pool: PoolName::new(name),
            entry: EntryId::new("e1"),
            at: at(1_200),
            cordoned: true,
            again: 0,
            excluded: true,
        });
        let node = ClusterNode { mark: mark.map(Box::new), ..node("n", format!("{UNIFORM}1")) };
        let mut inventory = listing(Orchestration::Uniform, &[("1", Condition::Ready)]);
        join_nodes(&mut inventory, &pool(), Ok(&[node]), NodeHealth::Counts);
        inventory.instances[0].marked
    };
    assert!(marked(Some("web")) && !marked(Some("old")) && !marked(None));
}

#[test]
fn a_silent_node_says_since_when() {
    let mut inventory = listing(Orchestration::Uniform, &[("1", Condition::Ready)]);
    let silent = ClusterNode { ready: NodeReady::Unknown, ..node("n", format!("{UNIFORM}1")) };
    join_nodes(&mut inventory, &pool(), Ok(&[silent]), NodeHealth::Ignored);
    assert_eq!(inventory.instances[0].unreachable_since, Some(at(1_100)));
    assert_eq!(inventory.instances[0].condition, Condition::Ready);
}
