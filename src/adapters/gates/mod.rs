//! Measures gates: by the numbers of a metric server, by the status of an endpoint, or by the exit code of a command.
//!
//! Never here: how often a gate is measured, how many passes it needs, a retry, an address or a command that a pool
//! file wrote, a shell, a secret in a text, a process that outlives its measurement. What is not clearly a pass or a
//! failure is unknown.
//! Begin with [`Gates`]; `http` asks an endpoint, `command` runs a program, `series` compares numbers.

pub mod command;
pub mod http;
mod series;

use std::collections::BTreeMap;

use crate::model::gate::GateCheck;
use crate::observe::{GateQuestion, GateReading, MeasureGate, ReadSeries};
use command::{CommandRunner, GateCommand};
use http::Endpoint;

/// All that gates may name, each by its name in the settings.
#[derive(Debug)]
pub struct Gates<M> {
    pub servers: BTreeMap<Box<str>, M>,
    pub endpoints: BTreeMap<Box<str>, Endpoint>,
    pub commands: BTreeMap<Box<str>, GateCommand>,
    pub runner: CommandRunner,
}

impl<M: ReadSeries + Sync> MeasureGate for Gates<M> {
    async fn measure(&self, of: GateQuestion<'_>) -> GateReading {
        match of.check {
            GateCheck::Prometheus(check) => match self.servers.get(&check.server) {
                Some(server) => series::measure(server, check, of).await,
                None => missing("metric server", &check.server, "metrics"),
            },
            GateCheck::Http(check) => match self.endpoints.get(&check.endpoint) {
                Some(endpoint) => endpoint.measure(check, of).await,
                None => missing("endpoint", &check.endpoint, "endpoints"),
            },
            GateCheck::Command { run } => match self.commands.get(run) {
                Some(command) => self.runner.run(command, of).await,
                None => missing("command", run, "commands"),
            },
        }
    }
}

fn missing(what: &str, name: &str, section: &str) -> GateReading {
    GateReading::unknown(format!(
        "the settings of the daemon have no {what} {name}; add it to them under {section}, or name another in the gate"
    ))
}

#[cfg(test)]
mod tests;
