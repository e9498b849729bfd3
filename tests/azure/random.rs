//! Whatever ARM leaves out, nulls or adds, a look comes to an end and proves no absence it should not.

use poolkeeper::adapters::azure::wire::{ArmScaleSet, ArmVm, ListPage};
use proptest::prelude::*;
use serde_json::{Map, Value, json};

use crate::azure::kit::{kit, machine, set, usual};
use crate::azure::server::Says;

/// What is done to one place of a document.
#[derive(Debug, Clone)]
enum Harm {
    Null,
    Remove,
    /// A field nobody has heard of, beside the others.
    Stranger(Value),
}

fn harm() -> impl Strategy<Value = Harm> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        ".{0,8}".prop_map(Value::from)
    ];
    let value = leaf.prop_recursive(3, 12, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map("[a-z]{1,6}", inner, 0..4)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    });
    prop_oneof![Just(Harm::Null), Just(Harm::Remove), value.prop_map(Harm::Stranger)]
}

/// Every place in a document where an object's field stands, as pointers to the object and the field.
fn places(value: &Value, at: &str, into: &mut Vec<(String, String)>) {
    match value {
        Value::Object(map) => {
            // Tags are not fields: each of them is a text, whatever it is called.
            for (key, inner) in map.iter().filter(|_| !at.ends_with("/tags")) {
                into.push((at.to_owned(), key.clone()));
                places(inner, &format!("{at}/{key}"), into);
            }
        }
        Value::Array(all) => {
            for (n, inner) in all.iter().enumerate() {
                places(inner, &format!("{at}/{n}"), into);
            }
        }
        _ => {}
    }
}

fn harmed(mut document: Value, harms: &[(prop::sample::Index, Harm)]) -> Value {
    for (index, harm) in harms {
        let mut all = Vec::new();
        places(&document, "", &mut all);
        if all.is_empty() {
            break;
        }
        let (object, field) = index.get(&all).clone();
        let map: &mut Map<String, Value> =
            document.pointer_mut(&object).unwrap().as_object_mut().unwrap();
        match harm {
            Harm::Null => map.insert(field, Value::Null),
            Harm::Remove => map.remove(&field),
            Harm::Stranger(value) => map.insert(format!("new{field}"), value.clone()),
        };
    }
    document
}

fn harms() -> impl Strategy<Value = Vec<(prop::sample::Index, Harm)>> {
    prop::collection::vec((any::<prop::sample::Index>(), harm()), 0..6)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(400) })]

    #[test]
    fn machines_are_read_whatever_is_missing(harms in harms()) {
        let page = json!({"value": [harmed(machine(0), &harms), machine(1)]}).to_string();
        let read: ListPage<'_, ArmVm<'_>> = ListPage::read(page.as_bytes()).unwrap();
        prop_assert_eq!(read.value.len(), 2);
    }

    #[test]
    fn sets_are_read_whatever_is_missing(harms in harms()) {
        let text = harmed(set(), &harms).to_string();
        ArmScaleSet::read(text.as_bytes()).unwrap();
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(60) })]

    #[test]
    fn a_machine_is_a_row_or_a_gap_and_never_nothing(harms in harms()) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let row = harmed(machine(0), &harms);
            let kit = kit(move |heard| match heard.is("GET", "/virtualMachines?") {
                true => Says::json(&json!({"value": [row, machine(1)]})),
                false => usual(heard),
            });
            let seen = kit.await.look().await.unwrap();
            assert_eq!(seen.instances.len() + seen.gaps.len(), 2, "{seen:?}");
            assert_eq!(seen.set.complete, seen.gaps.is_empty());
            let other = seen.instances.last().unwrap();
            assert_eq!(other.id.as_str(), "1", "one machine's trouble is not another's");
        });
    }

    #[test]
    fn a_list_cut_anywhere_never_shows_less_than_all_as_all(at in any::<prop::sample::Index>()) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let whole = json!({"value": [machine(0), machine(1)]}).to_string();
            let cut = whole[..at.index(whole.len())].to_owned();
            let kit = kit(move |heard| match heard.is("GET", "/virtualMachines?") {
                true => Says::status(200, &cut),
                false => usual(heard),
            });
            kit.await.look().await.unwrap_err();
        });
    }
}
