use super::*;
use crate::drain::nodes::{Nodes, node, ready};
use crate::drain::samples::at;
use crate::model::cluster::{NodeMark, NodeReady, NodeTaints, OutTaint};
use crate::model::gone::{DeletedMachine, GoneMachines};
use crate::model::ids::{ClusterName, EntryId};
use crate::model::time::{Skew, Span};

const AFTER: Span = Span::minutes(5);

/// Silent since the 1,000th second, with the mark of this pool.
fn silent(name: &str, id: &str, pool: Option<&str>) -> ClusterNode {
    let mark = pool.map(|pool| {
        let (pool, entry) = (PoolName::new(pool), EntryId::new("e1"));
        Box::new(NodeMark { pool, entry, at: at(900), cordoned: true, again: 0, excluded: true })
    });
    let provider_id = Some(format!("azure:///set/{id}").into());
    ClusterNode {
        ready: NodeReady::Unknown,
        since: Some(at(1_000)),
        provider_id,
        mark,
        ..node(name, None)
    }
}

/// Of each that was deleted, the second in which its node joined.
fn machines(known: &[&str], deleted: &[(&str, i64)]) -> GoneMachines {
    let known = known.iter().map(|id| (*id).to_owned()).collect();
    let machine = |joined| DeletedMachine { joined: at(joined), asked: at(950) };
    let deleted = deleted.iter().map(|(id, joined)| ((*id).to_owned(), machine(*joined))).collect();
    GoneMachines { prefix: "azure:///set/".into(), known, deleted, ahead: Skew::NONE }
}

/// What a turn at this second asks for, and why it stopped.
fn turn(
    gone: &GoneSince,
    nodes: &Nodes,
    machines: &GoneMachines,
    second: i64,
) -> (Vec<String>, Option<Box<str>>) {
    let (pool, cluster) = (PoolName::new("web"), ClusterName::new("main"));
    let before = at(second + 30);
    let request = GoneRequest { pool: &pool, cluster: &cluster, machines, after: AFTER, before };
    let refused = ready(gone.remove(nodes, request, at(second)));
    (std::mem::take(&mut *nodes.asked.lock().unwrap()), refused)
}

#[test]
fn a_node_goes_once_its_machine_has_been_gone_for_long() {
    let nodes = Nodes {
        main: vec![
            silent("ours", "1", Some("web")),
            silent("deleted", "2", None),
            silent("of-others", "3", Some("other")),
            silent("strange", "4", None),
            ClusterNode { created: at(951), ..silent("of-the-next-with-this-id", "7", None) },
            ClusterNode {
                created: at(900),
                ..silent("of-the-next-before-a-late-request", "10", None)
            },
            ClusterNode { created: at(940), ..silent("perhaps-of-the-next", "8", None) },
            ClusterNode { created: at(939), ..silent("of-the-machine", "9", None) },
            silent("listed", "5", Some("web")),
            ClusterNode { ready: NodeReady::True, ..silent("ready", "6", Some("web")) },
        ],
        ..Nodes::default()
    };
    let early = [("2", 0), ("5", 0), ("6", 0)];
    let late = [("7", 951), ("8", 940), ("9", 939), ("10", 800)];
    let seen = machines(&["5"], &[&early[..], &late].concat());
    let gone = GoneSince::default();
    assert_eq!(turn(&gone, &nodes, &seen, 2_000).0, [""; 0]);
    assert_eq!(turn(&gone, &nodes, &seen, 2_059).0, [""; 0]);
    // Those that we deleted are off for sure.
    let out = ["out deleted for web", "out of-the-machine for web"];
    assert_eq!(turn(&gone, &nodes, &seen, 2_060).0, out);
    assert_eq!(turn(&gone, &nodes, &seen, 2_299).0, out);
    assert_eq!(
        turn(&gone, &nodes, &seen, 2_300).0,
        ["delete deleted", "delete of-the-machine", "delete ours"]
    );
    let is_out = |node: &mut ClusterNode| {
        node.taints = NodeTaints::new(1, None, OutTaint::Others);
    };
    let mut tainted = Nodes { main: nodes.main.clone(), ..Nodes::default() };
    tainted.main.iter_mut().for_each(is_out);
    let (first, then) = (GoneSince::default(), [2_000, 2_100]);
    let asked = then.map(|second| turn(&first, &tainted, &seen, second).0);
    assert_eq!(asked, [[""; 0], [""; 0]], "another client was first");
    let restarted = GoneSince::default();
    assert_eq!(turn(&restarted, &nodes, &seen, 2_400).0, [""; 0], "it waits from its start on");
}

#[test]
fn a_node_of_a_clock_that_is_behind_may_be_the_next_machines() {
    let nodes = Nodes {
        main: vec![ClusterNode { created: at(900), ..silent("next", "1", None) }],
        ..Nodes::default()
    };
    // Our request was at the 950th second, and by our clock the node joined at the 1,000th.
    for (ahead, asked) in [(-100, vec![]), (0, vec!["delete next"]), (100, vec!["delete next"])] {
        let seen = GoneMachines { ahead: Skew::seconds(ahead), ..machines(&[], &[("1", 900)]) };
        let gone = GoneSince::default();
        let _first = turn(&gone, &nodes, &seen, 2_000);
        assert_eq!(turn(&gone, &nodes, &seen, 2_300).0, asked, "{ahead} s");
    }
}

#[test]
fn a_machine_that_shows_again_or_a_node_that_spoke_begins_anew() {
    let one = |since| {
        let node = ClusterNode { since: Some(at(since)), ..silent("ours", "1", Some("web")) };
        Nodes { main: vec![node], ..Nodes::default() }
    };
    let (gone, lacks) = (GoneSince::default(), machines(&[], &[]));
    assert_eq!(turn(&gone, &one(1_000), &lacks, 2_000).0, [""; 0]);
    assert_eq!(turn(&gone, &one(1_000), &machines(&["1"], &[]), 2_200).0, [""; 0]);
    assert_eq!(turn(&gone, &one(1_000), &lacks, 2_300).0, [""; 0], "a listing showed it");
    assert_eq!(turn(&gone, &one(2_500), &lacks, 2_700).0, [""; 0], "it was ready meanwhile");
    assert_eq!(turn(&gone, &one(2_500), &lacks, 2_800).0, ["delete ours"]);
}

#[test]
fn a_refusal_is_told_and_ends_the_round() {
    let three = || ["a", "b", "c"].map(|name| silent(name, name, Some("web"))).to_vec();
    let last = |refuses| {
        let nodes = Nodes { main: three(), refuses, ..Nodes::default() };
        let (gone, lacks) = (GoneSince::default(), machines(&[], &[]));
        let _first = turn(&gone, &nodes, &lacks, 2_000);
        turn(&gone, &nodes, &lacks, 2_300)
    };
    let (asked, refused) = last(vec![("a", Refusal::Conflict), ("b", Refusal::Forbidden)]);
    assert_eq!(asked, ["delete a", "delete b"]);
    assert_eq!(refused, Some("node b: forbidden".into()));
    assert_eq!(last(vec![("a", Refusal::Gone)]).0.len(), 3);
}
