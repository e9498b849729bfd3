use super::*;
use crate::drain::nodes::{Nodes, node, ready};
use crate::drain::samples::at;
use crate::model::cluster::{NodeReady, NodeShield, NodeTaints, OutTaint, PoolTaint};
use crate::model::signs::NodeSigns;

fn names(of: &[&str]) -> BTreeSet<NodeName> {
    of.iter().map(|name| NodeName::new(*name)).collect()
}

fn waiting(waits: &[&str], stays: &[&str], serves: &[&str]) -> NodeSigns {
    let (set, stays, serves) = (names(waits), names(stays), names(serves));
    NodeSigns { waiting: SignNodes { set, stays, serves, ends: false }, ..NodeSigns::default() }
}

fn shown_by(
    nodes: &Nodes,
    pool: &str,
    cluster: Option<&str>,
    wanted: &NodeSigns,
) -> (SignsOutcome, Vec<String>) {
    let (pool, cluster) = (PoolName::new(pool), cluster.map(ClusterName::new));
    let request =
        SignsRequest { pool: &pool, cluster: cluster.as_ref(), signs: wanted, before: at(9) };
    let outcome = ready(show(nodes, request));
    (outcome, std::mem::take(&mut *nodes.asked.lock().unwrap()))
}

fn shown(nodes: &Nodes, wanted: &NodeSigns) -> (SignsOutcome, Vec<String>) {
    shown_by(nodes, "web", Some("main"), wanted)
}

#[test]
fn each_node_gets_what_its_machine_says_by_one_patch() {
    let gone = ClusterNode { ready: NodeReady::Unknown, ..node("gone", Some("web")) };
    let nodes = Nodes {
        main: vec![
            node("waits", None),
            node("has-it", Some("web")),
            node("leaves", Some("web")),
            node("serves", Some("web")),
            node("plain", None),
            node("strange", Some("other")),
            node("no-machine", Some("web")),
            gone,
        ],
        ..Nodes::default()
    };
    let wanted =
        waiting(&["waits", "has-it", "strange", "unknown"], &["leaves"], &["serves", "plain"]);
    let (outcome, asked) = shown(&nodes, &wanted);
    assert_eq!(outcome, SignsOutcome::default());
    assert_eq!(
        asked,
        ["untaint serves in main", "untaint no-machine in main", "taint waits for web"],
        "what another pool set is that pool's, and what leaves takes its taint along"
    );
}

#[test]
fn of_a_pool_that_ends_or_lost_its_cluster_every_taint_goes() {
    let nodes = || Nodes {
        main: vec![node("a", Some("web")), node("b", Some("other"))],
        old: vec![node("c", Some("web"))],
        ..Nodes::default()
    };
    let all = ["untaint a in main", "untaint c in old"];
    assert_eq!(shown(&nodes(), &NodeSigns::none()).1, all);
    assert_eq!(shown_by(&nodes(), "web", None, &NodeSigns::none()).1, all);
    let renamed = waiting(&["a"], &[], &[]);
    assert_eq!(shown(&nodes(), &renamed).1, ["untaint c in old"]);
}

#[test]
fn a_refusal_ends_the_round_and_is_told_and_a_conflict_does_not() {
    let all = ["a", "b", "c", "d", "e", "f", "g"];
    let nodes = |refuses| Nodes {
        main: all.map(|name| node(name, None)).to_vec(),
        refuses,
        ..Nodes::default()
    };
    let wanted = waiting(&all, &[], &[]);
    let (outcome, asked) =
        shown(&nodes(vec![("a", Refusal::Conflict), ("b", Refusal::Gone)]), &wanted);
    assert_eq!(asked.len(), 7, "one try each");
    assert_eq!(outcome, SignsOutcome { left: 1, refused: None });
    let (outcome, asked) = shown(&nodes(vec![("b", Refusal::Forbidden)]), &wanted);
    assert_eq!(asked.len(), AT_ONCE, "the others would hear the same");
    assert_eq!(outcome, SignsOutcome { left: 3, refused: Some("node b: forbidden".into()) });
    let (outcome, asked) = shown(&nodes(vec![("b", Refusal::Throttled)]), &wanted);
    let later = SignsOutcome { left: 3, refused: None };
    assert_eq!(
        (outcome, asked.len()),
        (later, AT_ONCE),
        "a busy server is asked again by the next turn"
    );
    let away = Nodes { away: true, ..nodes(Vec::new()) };
    let (outcome, asked) = shown(&away, &wanted);
    assert_eq!((outcome.left, outcome.refused.is_some(), asked.len()), (1, true, 0));
}

#[test]
fn a_turn_changes_no_more_nodes_than_its_share() {
    let all: Vec<String> = (0..A_TURN + 40).map(|n| format!("n{n}")).collect();
    let all: Vec<&str> = all.iter().map(String::as_str).collect();
    let main = all.iter().map(|name| node(name, None)).collect();
    let (outcome, asked) = shown(&Nodes { main, ..Nodes::default() }, &waiting(&all, &[], &[]));
    assert_eq!((outcome.left, asked.len()), (40, A_TURN));
}

#[test]
fn a_pool_whose_name_is_no_value_of_a_taint_sets_none() {
    let nodes = Nodes { main: vec![node("a", None)], ..Nodes::default() };
    let wanted = waiting(&["a"], &[], &[]);
    for pool in ["web-", &"w".repeat(64)] {
        let (outcome, asked) = shown_by(&nodes, pool, Some("main"), &wanted);
        assert!(outcome.refused.is_some() && asked.is_empty(), "{pool}");
    }
    assert_eq!(shown_by(&nodes, &"w".repeat(63), Some("main"), &wanted).1.len(), 1);
}

fn shielded_by(name: &str, shield: NodeShield) -> ClusterNode {
    ClusterNode { shield: Some(Box::new(shield)), ..node(name, None) }
}

fn ours(pool: &str) -> NodeShield {
    NodeShield::Ours { pool: PoolName::new(pool), stands: true }
}

#[test]
fn a_shield_is_set_and_lifted_where_it_is_ours_and_nowhere_else() {
    let nodes = || Nodes {
        main: vec![
            node("new", None),
            shielded_by("has-it", ours("web")),
            shielded_by("theirs", NodeShield::Foreign),
            shielded_by("strange", ours("other")),
            shielded_by("leaves", ours("web")),
            shielded_by("serves", ours("web")),
            node("a", Some("web")),
        ],
        old: vec![shielded_by("old", ours("web"))],
        ..Nodes::default()
    };
    let shielded = SignNodes {
        set: names(&["new", "has-it", "theirs", "strange", "unknown"]),
        stays: names(&["leaves"]),
        serves: names(&["serves", "a"]),
        ends: false,
    };
    let wanted = NodeSigns { shielded, ..waiting(&["a"], &[], &[]) };
    let (outcome, asked) = shown(&nodes(), &wanted);
    assert_eq!(outcome, SignsOutcome::default());
    assert_eq!(asked, ["unshield serves in main", "unshield old in old", "shield new for web"]);
    let all = ["has-it in main", "leaves in main", "serves in main", "old in old"];
    let all: Vec<String> = all.iter().map(|of| format!("unshield {of}")).collect();
    let ends = shown(&nodes(), &NodeSigns::none()).1;
    assert_eq!(ends, [all, vec!["untaint a in main".to_owned()]].concat());
}

#[test]
fn a_pool_whose_name_is_no_value_of_a_taint_shields_still() {
    let nodes = Nodes { main: vec![node("a", None), node("b", None)], ..Nodes::default() };
    let shielded = SignNodes { set: names(&["b"]), ..SignNodes::default() };
    let wanted = NodeSigns { shielded, ..waiting(&["a"], &[], &[]) };
    let (outcome, asked) = shown_by(&nodes, "web-", Some("main"), &wanted);
    assert!(outcome.refused.is_some() && outcome.left == 0);
    assert_eq!(asked, ["shield b for web-"]);
}

#[test]
fn a_node_whose_machine_is_off_is_out_of_service_until_it_answers_again() {
    let silent = |name| ClusterNode { ready: NodeReady::Unknown, ..node(name, None) };
    let out = |name, pool| {
        let taint = PoolTaint { pool: PoolName::new(pool), index: 0 };
        let taints = NodeTaints::new(1, None, OutTaint::Ours(taint));
        ClusterNode { taints, ..silent(name) }
    };
    let theirs = NodeTaints::new(1, None, OutTaint::Others);
    let nodes = || Nodes {
        main: vec![
            silent("off"),
            node("answers", None),
            out("has-it", "web"),
            ClusterNode { ready: NodeReady::True, ..out("is-back", "web") },
            ClusterNode { taints: theirs.clone(), ..silent("theirs") },
            out("strange", "other"),
            out("runs", "web"),
            out("gone", "web"),
        ],
        ..Nodes::default()
    };
    let set = names(&["off", "answers", "has-it", "is-back", "theirs", "strange"]);
    let off = SignNodes { set, serves: names(&["runs"]), ..SignNodes::default() };
    let wanted = NodeSigns { off, ..NodeSigns::default() };
    let asked = shown(&nodes(), &wanted).1;
    assert_eq!(asked, ["back is-back in main", "back runs in main", "out off for web"]);
    let ended = shown(&nodes(), &NodeSigns::none()).1;
    assert_eq!(
        ended,
        ["back has-it in main", "back is-back in main", "back runs in main", "back gone in main"]
    );
    let long = "w".repeat(LONGEST_VALUE - OUT_FOR.len() + 1);
    let (outcome, asked) = shown_by(&nodes(), &long, Some("main"), &wanted);
    assert!(outcome.refused.is_some() && asked.is_empty(), "{asked:?}");
}
