//! The disruption budgets of a cluster that no drain gets past, and those that protect nothing.

use super::check::Check;
use super::cluster_rights::{self, said};
use crate::model::cluster::Budget;
use crate::model::journal::{Refusal, Refused};
use crate::model::quantity::counted;

const NAME: &str = "budgets";

/// The most budgets that a sentence names; the rest are counted.
const NAMES: usize = 8;

/// One check with their count, and one for each kind of problem. A budget may be of pods on other nodes than ours, so
/// none is a finding.
pub(super) fn checks(read: Result<Vec<Budget>, Refused>) -> Vec<Check> {
    let mut budgets = match read {
        Ok(budgets) => budgets,
        Err(refused) => return vec![unread(&refused)],
    };
    budgets.sort_by(|one, other| (&one.namespace, &one.name).cmp(&(&other.namespace, &other.name)));
    let mut checks = vec![count(&budgets)];
    checks.extend(blocking(&budgets));
    checks.extend(of_bare_pods(&budgets));
    checks.extend(without_pods(&budgets));
    checks
}

fn unread(refused: &Refused) -> Check {
    let check = Check::unknown(NAME, format!("they could not be read: {}", said(refused)));
    match refused.refusal {
        Refusal::Forbidden => {
            check.next(format!("allow {} to have them checked", cluster_rights::BUDGETS))
        }
        _ => check,
    }
}

fn count(budgets: &[Budget]) -> Check {
    let say = match budgets.len() {
        0 => "there is none: evictions go on without asking".to_owned(),
        all => counted(all, "budget"),
    };
    let is_short = |of: &&Budget| !of.stale && of.allowed == 0 && !of.never_allows();
    let short =
        named(budgets, is_short, |of| format!(" ({} of {} healthy)", of.healthy, of.expected));
    let short = short.map(|(_, names)| format!("; no eviction is allowed just now by {names}"));
    let stale = budgets.iter().filter(|of| of.stale).count();
    let stale = (stale > 0).then(|| format!("; of {stale} the cluster has no new numbers yet"));
    Check::fine(NAME, format!("{say}{}{}", short.unwrap_or_default(), stale.unwrap_or_default()))
}

fn blocking(budgets: &[Budget]) -> Option<Check> {
    let is_so = |of: &&Budget| of.never_allows() && of.expected > 0;
    let pods = |of: &Budget| format!(" ({} healthy of {})", of.desired, of.expected);
    let (count, names) = named(budgets, is_so, pods)?;
    let say = format!(
        "even with all pods healthy, {count} can allow no eviction: {names}; a drain that meets one of these pods \
         waits, until `drain.ladder` ends it"
    );
    let next = "let each do without one pod: `maxUnavailable` of 1 or more, or `minAvailable` below the number of pods; \
                a pod that is alone needs a second one first";
    Some(Check::note(NAME, say).next(next))
}

/// Of pods without a controller the cluster knows no number that there should be, and it evicts none of them.
fn of_bare_pods(budgets: &[Budget]) -> Option<Check> {
    let is_so = |of: &&Budget| of.never_allows() && of.expected == 0 && of.healthy > 0;
    let pods = |of: &Budget| format!(" ({})", counted(of.healthy as usize, "pod"));
    let (count, names) = named(budgets, is_so, pods)?;
    let say = format!(
        "no controller makes the pods of {count}, so none of them can ever be evicted: {names}"
    );
    let next = "give these budgets a `minAvailable` that is a number, or the pods a controller";
    Some(Check::note(NAME, say).next(next))
}

fn without_pods(budgets: &[Budget]) -> Option<Check> {
    let is_so = |of: &&Budget| !of.stale && of.expected == 0 && of.healthy == 0;
    let (count, names) = named(budgets, is_so, |_| String::new())?;
    let say = format!("{count} without a pod now, so nothing is protected: {names}");
    let next = "compare their selectors with the labels of the pods that you mean";
    Some(Check::note(NAME, say).next(next))
}

/// How many budgets are so, and the first of their names, each with what else is to be said of it.
fn named(
    budgets: &[Budget],
    is_so: impl Fn(&&Budget) -> bool,
    more: impl Fn(&Budget) -> String,
) -> Option<(String, String)> {
    let all: Vec<&Budget> = budgets.iter().filter(is_so).collect();
    let first = all.iter().take(NAMES);
    let first = first.map(|of| format!("{}/{}{}", of.namespace, of.name, more(of)));
    let mut names = first.collect::<Vec<_>>().join(", ");
    if all.len() > NAMES {
        names.push_str(&format!(" and {} more", all.len() - NAMES));
    }
    (!all.is_empty()).then(|| (counted(all.len(), "budget"), names))
}

#[cfg(test)]
mod tests {
    use super::super::CheckOutcome::{Fine, Note, Unknown};
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
            stale: false,
        }
    }

    #[test]
    fn budgets_that_can_allow_something_are_fine() {
        let told = checks(Ok(vec![budget("b", [3, 2, 3, 1]), budget("a", [2, 2, 3, 0])]));
        let say = "2 budgets; no eviction is allowed just now by shop/a (2 of 3 healthy)";
        assert_eq!(told, [Check::fine(NAME, say)]);
        let stale = Budget { stale: true, ..budget("c", [0, 0, 0, 0]) };
        let told = checks(Ok(vec![stale]));
        assert_eq!(told, [Check::fine(NAME, "1 budget; of 1 the cluster has no new numbers yet")]);
        assert_eq!(checks(Ok(Vec::new()))[0].outcome, Fine);
    }

    #[test]
    fn each_kind_of_problem_is_one_sentence() {
        let told = checks(Ok(vec![
            budget("z", [3, 3, 3, 0]),
            budget("one", [1, 1, 1, 0]),
            budget("bare", [2, 0, 0, 0]),
            budget("empty", [0, 0, 0, 0]),
            budget("good", [3, 2, 3, 1]),
        ]));
        let outcomes: Vec<_> = told.iter().map(|check| check.outcome).collect();
        assert_eq!(outcomes, [Fine, Note, Note, Note]);
        assert_eq!(told[0].say, "5 budgets");
        let say = "even with all pods healthy, 2 budgets can allow no eviction: shop/one (1 healthy of 1), shop/z (3 healthy of 3); ";
        assert!(told[1].say.starts_with(say), "{told:?}");
        let say = "no controller makes the pods of 1 budget, so none of them can ever be evicted: shop/bare (2 pods)";
        assert_eq!(told[2].say, say);
        assert_eq!(told[3].say, "1 budget without a pod now, so nothing is protected: shop/empty");
        assert!(told[1..].iter().all(|check| check.next.is_some()), "each has a remedy: {told:?}");
    }

    #[test]
    fn many_are_counted() {
        let all = (0..11).map(|n| budget(&format!("b{n:02}"), [1, 1, 1, 0])).collect();
        let say = &checks(Ok(all))[1].say;
        assert!(say.contains("11 budgets") && say.contains(" and 3 more;"), "{say}");
        assert!(say.contains("shop/b07") && !say.contains("shop/b08"), "{say}");
    }

    #[test]
    fn budgets_that_could_not_be_read_are_unknown() {
        let of = |refusal| {
            checks(Err(Refused { message: Some("no".into()), ..Refused::plain(refusal) }))
        };
        let told = of(Refusal::Forbidden);
        let next = told[0].next.as_deref();
        assert_eq!((told.len(), told[0].outcome), (1, Unknown));
        assert_eq!(next, Some("allow list poddisruptionbudgets.policy to have them checked"));
        assert_eq!(of(Refusal::Unclear)[0].next, None);
    }
}
