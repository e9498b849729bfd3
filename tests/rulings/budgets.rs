//! Disruption budgets that no drain gets past are said before anything starts, and stop nothing.

use poolkeeper::model::facts::BudgetFact;
use poolkeeper::model::time::Span;

use super::kit::Pool;

fn budget(name: &str, [healthy, desired, pods, allowed]: [u32; 4]) -> BudgetFact {
    BudgetFact { name: name.into(), healthy, desired, allowed, pods }
}

fn with(mut pool: Pool, budgets: &[BudgetFact]) -> Pool {
    pool.facts.budgets = budgets.to_vec();
    pool
}

fn notices(pool: &Pool) -> String {
    pool.plan().planned.report.notices.join("\n")
}

fn alone() -> BudgetFact {
    budget("shop/db", [1, 1, 1, 0])
}

#[test]
fn a_budget_that_can_never_allow_is_said_before_its_rollout_begins() {
    let pool = Pool::new(3, "1", "0").old_ready(3).nodes();
    let three = [alone(), budget("shop/web", [3, 2, 3, 1]), budget("shop/zoo", [2, 3, 3, 0])];
    let pool = with(pool, &three);
    let said = notices(&pool);
    let say = "even with all their pods healthy, 2 disruption budgets can allow no eviction: \
               shop/db (wants 1 healthy of 1 pod, has 1), shop/zoo (wants 3 healthy of 3 pods, has 2); \
               a drain that meets such a pod tries for 20m and then sets the machine aside; \
               let each do without one pod: `maxUnavailable` of 1 or more, or `minAvailable` below the number of its pods";
    assert_eq!(said, say);
    let deletes = pool.clone().policy(|d| {
        d.drain.nodes.ladder.delete = Some(Span::minutes(5));
        d.drain.nodes.ladder.shorter_grace = None;
    });
    assert!(notices(&deletes).contains("tries for 15m and then deletes it"));
    // A warning holds up nothing.
    let silent = with(pool.clone(), &[]).plan().planned;
    let loud = pool.plan().planned;
    assert_eq!((loud.actions, loud.report.holds), (silent.actions, silent.report.holds));
}

#[test]
fn only_what_can_never_allow_is_said_and_only_if_machines_with_pods_leave() {
    let rolls = || Pool::new(3, "1", "0").old_ready(3).nodes();
    // One that is short of pods now may allow later; one without pods holds up nothing.
    let may = [budget("a/short", [2, 2, 3, 0]), budget("a/none", [0, 0, 0, 0])];
    assert_eq!(notices(&with(rolls(), &may)), "");
    let settled = Pool::new(3, "1", "0").settled().new_ready(3).nodes();
    assert_eq!(notices(&with(settled.clone(), &[alone()])), "", "no machine leaves");
    assert!(notices(&with(settled.named("n1", false), &[alone()])).contains("shop/db"));
    let plain = Pool::new(3, "1", "0").old_ready(3);
    assert_eq!(notices(&with(plain.clone(), &[alone()])), "", "no machine has pods");
    let pods = plain.edit("o2", |machine| machine.workloads = 4);
    assert!(notices(&with(pods, &[alone()])).contains("shop/db"));
    // Where the number of pods is known, a node without any waits for no budget.
    let elsewhere = Pool::new(2, "1", "0").old_ready(1).new_ready(1).nodes();
    let elsewhere = elsewhere.edit("n1", |machine| machine.workloads = 4);
    assert_eq!(notices(&with(elsewhere, &[alone()])), "");
    let bare = notices(&with(rolls(), &[budget("a/bare", [2, 0, 0, 0])]));
    assert!(bare.contains("a/bare (no controller makes its 2 pods)"), "{bare}");
}

#[test]
fn budgets_of_machines_that_stay_are_left_out() {
    let pool = Pool::new(2, "1", "0").old_ready(1).new_ready(1).nodes();
    let mut pool = with(pool, &[budget("a/goes", [1, 1, 1, 0]), budget("a/stays", [1, 1, 1, 0])])
        .each(|machine| machine.workloads = 1);
    for (id, name) in [("o1", "a/goes"), ("n1", "a/stays")] {
        let id = pool.machine(id).id.clone();
        pool.facts.machine_budgets.insert(id, vec![name.into()]);
    }
    let said = notices(&pool);
    assert!(said.contains("1 disruption budget can") && said.contains("a/goes"), "{said}");
    assert!(!said.contains("a/stays"), "{said}");
}

#[test]
fn many_budgets_are_counted_and_unread_ones_are_owned_up_to() {
    let many: Vec<BudgetFact> = (1..=7).map(|n| budget(&format!("a/b{n}"), [1, 1, 1, 0])).collect();
    let rolls = || Pool::new(3, "1", "0").old_ready(3).nodes();
    let said = notices(&with(rolls(), &many));
    assert!(
        said.contains("7 disruption budgets can") && said.contains("has 1) and 2 more;"),
        "{said}"
    );
    let mut unread = rolls();
    unread.facts.budgets_unread = Some("forbidden".into());
    let said = notices(&unread);
    assert!(said.contains("could not be read") && said.ends_with(": forbidden"), "{said}");
    let at_rest = Pool { machines: Vec::new(), ..unread }.settled().new_ready(3).nodes();
    assert_eq!(notices(&at_rest), "");
}
