//! A pool document for people: what differs from the defaults, in YAML.

use crate::api::v1::pool::{PoolDocuments, to_json};
use crate::cli::yaml::JsonTree;

/// The shortest form of a pool document that is read as the same policy; all of it, if this program cannot read it.
pub(super) fn shortest(document: JsonTree) -> JsonTree {
    match meaning(&document) {
        Some(meant) => shortened(document, &|whole| whole, &|whole| {
            meaning(whole).is_some_and(|found| found == meant)
        }),
        None => document,
    }
}

/// The policy of a document, with every key written out.
fn meaning(document: &JsonTree) -> Option<String> {
    let (policies, faults) = PoolDocuments::default().read(&document.yaml(), None);
    match &policies[..] {
        [policy] if faults.is_empty() => Some(to_json(policy)),
        _ => None,
    }
}

/// The value without the keys that the whole document does not need. `whole` puts a value into its document.
fn shortened(
    value: JsonTree,
    whole: &dyn Fn(JsonTree) -> JsonTree,
    is_same: &dyn Fn(&JsonTree) -> bool,
) -> JsonTree {
    match value {
        JsonTree::Map(mut entries) => {
            let mut at = 0;
            while at < entries.len() {
                let mut fewer = entries.clone();
                let (key, inner) = fewer.remove(at);
                if is_same(&whole(JsonTree::Map(fewer.clone()))) {
                    entries = fewer;
                    continue;
                }
                let within = |inner: JsonTree| {
                    let mut all = fewer.clone();
                    all.insert(at, (key.clone(), inner));
                    whole(JsonTree::Map(all))
                };
                let inner = shortened(inner, &within, is_same);
                fewer.insert(at, (key.clone(), inner));
                entries = fewer;
                at += 1;
            }
            JsonTree::Map(entries)
        }
        JsonTree::List(items) => {
            let mut done: Vec<JsonTree> = Vec::new();
            let mut rest = items.into_iter();
            while let Some(item) = rest.next() {
                let later = rest.as_slice().to_vec();
                let within = |item: JsonTree| {
                    let all = done.iter().cloned().chain([item]).chain(later.iter().cloned());
                    whole(JsonTree::List(all.collect()))
                };
                let item = shortened(item, &within, is_same);
                done.push(item);
            }
            JsonTree::List(done)
        }
        scalar => scalar,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const POOL: &str = "\
apiVersion: poolkeeper/v1
kind: Pool
name: web
scaleSet: /subscriptions/00000000-0000-0000-0000-000000000001/resourceGroups/rg/providers/Microsoft.Compute/virtualMachineScaleSets/web
replicas:
  owner: pool
  count: 7
";

    fn full(yaml: &str) -> JsonTree {
        let (policies, faults) = PoolDocuments::default().read(yaml, None);
        assert_eq!((policies.len(), &faults[..]), (1, &[][..]));
        serde_json::from_str(&to_json(&policies[0])).unwrap()
    }

    #[test]
    fn defaults_are_left_out() {
        let short = shortest(full(POOL)).yaml();
        assert!(short.lines().count() <= POOL.trim().lines().count(), "{short}");
        for line in ["apiVersion: poolkeeper/v1", "kind: Pool", "name: web", "  count: 7"] {
            assert!(short.lines().any(|found| found == line), "{line}: {short}");
        }
    }

    #[test]
    fn the_short_form_is_the_same_pool() {
        const FILES: [&str; 3] = [
            include_str!("../../../config/pools/batch.yaml"),
            include_str!("../../../config/pools/careful.yaml"),
            include_str!("../../../config/pools/web.yaml"),
        ];
        for file in FILES {
            let (policies, faults) = PoolDocuments::default().read(file, None);
            assert!(!policies.is_empty() && faults.is_empty(), "{file}");
            for policy in policies {
                let full: JsonTree = serde_json::from_str(&to_json(&policy)).unwrap();
                let short = shortest(full.clone());
                assert_eq!(meaning(&short), Some(to_json(&policy)), "{}", short.yaml());
                assert!(short.yaml().len() < full.yaml().len(), "{}", short.yaml());
                assert_eq!(shortest(short.clone()), short);
            }
        }
    }

    #[test]
    fn what_is_no_pool_stays_as_it_is() {
        let strange: JsonTree = serde_json::from_str(r#"{"kind":"Pool","colour":"red"}"#).unwrap();
        assert_eq!(shortest(strange.clone()), strange);
    }
}
