//! What is remembered of network interfaces: which VM each belongs to.

use moka::policy::EvictionPolicy;
use moka::sync;

use crate::model::time::{Span, Time};

/// How long it is remembered which VM an interface belongs to.
// 10 min: an interface that a set made stays with its VM, but a person can give one to another.
const KNOWN_FOR: Span = Span::minutes(10);

/// Maximum number of remembered interfaces.
// 8,192: eight sets of the largest size.
const INTERFACES: u64 = 8_192;

/// The VMs of network interfaces, by the interface's id in lower case.
#[derive(Debug)]
pub(super) struct InterfaceCache(sync::Cache<Box<str>, (Time, Box<str>)>);

impl Default for InterfaceCache {
    fn default() -> Self {
        let all = sync::Cache::builder().max_capacity(INTERFACES);
        Self(all.eviction_policy(EvictionPolicy::lru()).build())
    }
}

impl InterfaceCache {
    pub fn vm(&self, interface: &str, now: Time) -> Option<Box<str>> {
        let (at, vm) = self.0.get(interface)?;
        (at <= now && now.since(at) < KNOWN_FOR).then_some(vm)
    }

    pub fn keep(&self, interface: Box<str>, vm: Box<str>, now: Time) {
        self.0.insert(interface, (now, vm));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interface_is_remembered_for_a_while() {
        let (cache, at) = (InterfaceCache::default(), |n: i64| Time::from_millis(n * 1_000));
        cache.keep("/n".into(), "/v".into(), at(10));
        assert_eq!(cache.vm("/n", at(609)).as_deref(), Some("/v"));
        for now in [9, 610] {
            assert_eq!(cache.vm("/n", at(now)), None, "{now}");
        }
        assert_eq!(cache.vm("/m", at(10)), None);
    }
}
