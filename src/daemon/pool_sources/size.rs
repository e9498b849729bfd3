//! Where a pool file says the size of a pool.

use std::path::Path;

use crate::api::v1::node::{self, Node, NodeKind};
use crate::model::ids::PoolName;

/// The line of the pool's number, or of the key that holds it; `None`: the file cannot be read now.
pub fn size_line(path: &Path, pool: &PoolName) -> Option<u32> {
    let bytes = std::fs::read(path).ok()?;
    line(node::text(&bytes).ok()?, pool)
}

fn line(text: &str, pool: &PoolName) -> Option<u32> {
    let is_it = |node: &&Node| {
        let name = node.entry("name").map(|entry| &entry.value.kind);
        matches!(name, Some(NodeKind::Text(name)) if *name.text == *pool.as_str())
    };
    let documents = node::read(text);
    let pool = documents.roots.iter().map(|root| &root.node).find(is_it)?;
    let replicas = pool.entry("replicas")?;
    Some(replicas.value.entry("count").map_or(replicas.at.line, |count| count.at.line))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_is_that_of_the_pools_own_number() {
        let text = "\
name: web
replicas:
  owner: pool
  count: 30
---
name: batch
replicas: {count: 4}
---
name: theirs
";
        let of = |pool: &str| line(text, &PoolName::new(pool));
        assert_eq!(
            [of("web"), of("batch"), of("theirs"), of("other")],
            [Some(4), Some(7), None, None]
        );
        assert_eq!(line("name: [", &PoolName::new("web")), None);
    }
}
