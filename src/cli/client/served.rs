//! Reads pools from a running Poolkeeper server.

use serde::de::DeserializeOwned;
use serde_json::Value;

use super::{ServerLine, strange};
use crate::api::client::Request;
use crate::api::v1::resources::machines::MachineStatus;
use crate::api::v1::resources::pools::PoolStatus;
use crate::cli::exit::{CommandFailure, Exit};
use crate::cli::page::PoolFacts;
use crate::cli::text::{alike, list};

/// The most pool names that an error about an unknown pool lists.
const NAMES: usize = 8;

impl ServerLine {
    /// One part of a pool. If the pool does not exist, the error suggests existing names.
    pub fn of_pool<T: DeserializeOwned>(
        &self,
        pool: &str,
        part: &[&str],
    ) -> Result<(String, T), CommandFailure> {
        let path = [&["pools", pool], part].concat();
        self.read(&Request::get(&path)).map_err(|failure| self.nearest(pool, failure))
    }

    /// Adds the nearest pool names to an error about an unknown pool.
    fn nearest(&self, pool: &str, failure: CommandFailure) -> CommandFailure {
        if failure.exit != Exit::NotFound || failure.report.help.is_some() {
            return failure;
        }
        let Ok(pools) = self.pools() else { return failure };
        let names: Vec<&str> = pools.iter().map(|(_, pool)| pool.name.as_str()).collect();
        if names.contains(&pool) {
            return failure;
        }
        let near = alike(&names, pool);
        match (near.is_empty(), names.is_empty()) {
            (false, _) => failure.help(format!("nearest: {}", list(near.into_iter(), NAMES))),
            (true, true) => failure.help("the daemon manages no pool"),
            (true, false) => failure.help(format!("there are: {}", list(names.into_iter(), NAMES))),
        }
    }

    /// The same, for a request under this path.
    pub fn about(&self, path: &[&str], failure: CommandFailure) -> CommandFailure {
        match path {
            ["pools", pool, ..] => self.nearest(pool, failure),
            _ => failure,
        }
    }

    pub fn status(&self, pool: &str) -> Result<(String, PoolStatus), CommandFailure> {
        self.of_pool(pool, &["status"])
    }

    /// All pools, each as raw JSON and parsed.
    pub fn pools(&self) -> Result<Vec<(Value, PoolStatus)>, CommandFailure> {
        items(self.all(&["pools"])?)
    }

    pub fn machines(&self, pool: &str) -> Result<Vec<MachineStatus>, CommandFailure> {
        let machines = items(self.all(&["pools", pool, "machines"])?)?;
        Ok(machines.into_iter().map(|(_, machine)| machine).collect())
    }

    /// The plan of the last turn, as raw text and parsed.
    pub fn decided(&self, pool: &str) -> Result<(String, PoolFacts<'static>), CommandFailure> {
        let (_, status) = self.status(pool)?;
        let machines = self.machines(pool)?;
        let (text, plan) = self.of_pool(pool, &["plan"])?;
        Ok((text, PoolFacts { plan, status, machines }))
    }
}

fn items<T: DeserializeOwned>(mut list: Value) -> Result<Vec<(Value, T)>, CommandFailure> {
    let items: Vec<Value> =
        serde_json::from_value(list["items"].take()).map_err(|error| strange(&error))?;
    let read = |item: Value| T::deserialize(&item).map(|read| (item, read));
    items.into_iter().map(read).collect::<Result<_, _>>().map_err(|error| strange(&error))
}
