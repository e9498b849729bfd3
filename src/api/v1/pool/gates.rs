//! The gates of a pool file.

use serde_json::json;

use super::form::*;
use super::replicas::LONGEST_QUERY;
use super::scalar::*;
use super::section::SectionValue;
use super::table::{Key, KeyTable, tables};
use super::value_form::{KeyReference, ValueForm};
use crate::api::v1::diagnostic::{Code, Diagnostic, quote};
use crate::api::v1::node::{NodeEntry, NodeKind, join};
use crate::model::facts::Verdict;
use crate::model::gate::{
    Comparison, EachSeries, GateCheck, GatePolicy, HttpCheck, OnUnknown, PartialAnswer,
    PrometheusCheck, StatusPattern,
};

/// More than a person can watch.
const MOST_GATES: usize = 32;
/// A gate that needs more passes in a row than this never passes.
const MOST_MEASUREMENTS: u32 = 1_000;
/// `!= -1.7976931348623157e308` fits.
const LONGEST_COMPARISON: usize = 40;
const MOST_STATUSES: usize = 32;
/// The kinds of a gate; it has one of them.
const KINDS: [&str; 3] = ["prometheus", "http", "command"];

/// A gate whose name or check is not read yet.
pub(super) struct GateParts {
    name: Option<Box<str>>,
    check: Option<GateCheck>,
    rest: GatePolicy,
}

pub(super) struct PrometheusParts {
    server: Option<Box<str>>,
    query: Option<Box<str>>,
    pass: Option<Comparison>,
    fail: Option<Comparison>,
    each: Option<EachSeries>,
    partial: PartialAnswer,
}

pub(super) type HttpParts = (Option<Box<str>>, Vec<(StatusPattern, Verdict)>);

tables! {
    GATE(g: GateParts) = {
        /// The name of the gate in checkpoints, status and history. No other gate of the pool has it.
        required "name": Maybe(line::<LONGEST_NAME>()) => g.name, like "errors";
        /// A query of a metric server, and which of its values pass.
        "prometheus": PROMETHEUS => g.check, if matches!(g.check, Some(GateCheck::Prometheus(_))),
            like {"server": "main", "query": "sum(rate(errors[1m]))", "pass": "<= 0.01", "fail": "> 0.05"};
        /// A GET of an endpoint: 200 passes.
        "http": HTTP => g.check, if matches!(g.check, Some(GateCheck::Http(_))), like {"endpoint": "shop"};
        /// A command on the machine of the daemon: exit 0 passes, 1 fails, and everything else says nothing.
        "command": COMMAND => g.check, if matches!(g.check, Some(GateCheck::Command { .. })), like {"run": "smoke"};
        /// The time between two measurements; from 5s to 1h.
        "interval": DURATION => g.rest.interval, like "1m";
        /// Measurements sooner than this after the question count for nothing. A query over a time needs at least that time.
        "initialDelay": DURATION => g.rest.initial_delay, like "5m";
        /// How long a measurement may take; from 1s to 5m.
        "timeout": DURATION => g.rest.timeout, like "30s";
        /// How many measurements must pass one after another, until the gate passes.
        "need": whole::<1, MOST_MEASUREMENTS>() => g.rest.need, like 5;
        /// How many measurements may fail before the gate fails. A pass between them resets nothing.
        "failures": whole::<0, MOST_MEASUREMENTS>() => g.rest.failures, like 0;
        /// How long a question may stay without a verdict.
        "unknownFor": DURATION => g.rest.unknown_for, like "30m";
        /// What follows then. pause: the rollout pauses until a person resumes it. fail: the gate fails.
        "onUnknown": word::<OnUnknown>() => g.rest.on_unknown, like "fail";
    }
    PROMETHEUS_KEYS(p: PrometheusParts) = {
        /// The name of a metric server in the settings of the daemon.
        required "server": Maybe(line::<LONGEST_NAME>()) => p.server, like "main";
        /// A query whose answer is one number, or several with `each`.
        required "query": Maybe(line::<LONGEST_QUERY>()) => p.query, like "sum(rate(errors[1m]))";
        /// The values that pass.
        required "pass": Maybe(COMPARISON) => p.pass, like "<= 0.01";
        /// The values that fail. A value that does neither says nothing. Without it, what does not pass fails.
        "fail": Maybe(COMPARISON) => p.fail, like "> 0.05";
        /// What the series of an answer must do. all: all must pass, and one that fails is enough to fail. any: one that
        /// passes is enough, and all must fail to fail. Without it an answer with several series says nothing.
        "each": Maybe(word::<EachSeries>()) => p.each, like "all";
        /// What an answer is that the server calls incomplete. refuse: it says nothing. accept: it counts.
        "partial": word::<PartialAnswer>() => p.partial, like "accept";
    }
    HTTP_KEYS(h: HttpParts) = {
        /// The name of an endpoint in the settings of the daemon.
        required "endpoint": Maybe(line::<LONGEST_NAME>()) => h.0, like "shop";
        /// What other statuses mean: a status or 2xx, 4xx or 5xx, and pass, fail or unknown. What is not named says nothing.
        "expect": EXPECT => h.1, like {"204": "pass", "5xx": "fail"};
    }
    COMMAND_KEYS(run: Option<Box<str>>) = {
        /// The name of a command in the settings of the daemon.
        required "run": Maybe(line::<LONGEST_NAME>()) => *run, like "smoke";
    }
}

const COMPARISON: Scalar<Comparison> = Scalar::new(
    |value| {
        let text = value.text(LONGEST_COMPARISON)?;
        Comparison::parse(text).ok_or_else(|| {
            let say = format!("{} is not a relation and a number", quote(text));
            Box::new(
                value
                    .bad(say)
                    .help("write it like \"<= 0.01\"; relations are <=, <, >=, >, == and !="),
            )
        })
    },
    text,
    || {
        let pattern = "^\\s*(<=|<|>=|>|==|!=)\\s*-?[0-9.]+([eE][+-]?[0-9]+)?\\s*$";
        let schema =
            json!({ "type": "string", "pattern": pattern, "maxLength": LONGEST_COMPARISON });
        ValueForm::new("a relation and a number, such as <= 0.01", schema)
    },
);

/// A map from a status to what it means.
const EXPECT: Special<Vec<(StatusPattern, Verdict)>> = Special {
    read: expect,
    write: |of| {
        let each = of.iter().map(|(status, means)| (status.to_string().into(), text(means.name())));
        (!of.is_empty()).then(|| OrderedJson::Map(each.collect()))
    },
    form: |_| {
        let words: Vec<&str> = Verdict::ALL.iter().map(|word| word.name()).collect();
        let schema = json!({
            "type": "object", "maxProperties": MOST_STATUSES,
            "propertyNames": { "pattern": "^([245]xx|[245][0-9][0-9])$" },
            "additionalProperties": { "type": "string", "enum": words },
        });
        ValueForm::new("a map from a status to pass, fail or unknown", schema)
    },
};

fn expect(
    value: &SectionValue<'_>,
    slot: &mut Vec<(StatusPattern, Verdict)>,
    out: &mut Vec<Diagnostic>,
) {
    let NodeKind::Map(entries) = &value.node.kind else {
        out.push(*value.wrong_type("a map from a status to pass, fail or unknown"));
        return;
    };
    if entries.len() > MOST_STATUSES {
        out.push(*value.bad(format!("{} statuses are more than {MOST_STATUSES}", entries.len())));
        return;
    }
    for NodeEntry { key, value: node, .. } in entries {
        let item = SectionValue { node, path: join(&value.path, &quote(key)) };
        match (StatusPattern::parse(key), one_of::<Verdict>(&item)) {
            (_, Err(fault)) => out.push(*fault),
            (None, _) => {
                let say = format!("{} is no status that a gate can expect", quote(key));
                let help = "write a status such as 204 or 503, or 2xx, 4xx or 5xx; a redirect says nothing";
                out.push(item.bad(say).help(help));
            }
            (Some(status), Ok(means)) => slot.push((status, means)),
        }
    }
    // A status before its class.
    slot.sort_by_key(|(status, _)| *status);
}

const PROMETHEUS: Special<Option<GateCheck>> = Special {
    read: |value, slot, out| {
        let mut parts = no_query();
        PROMETHEUS_KEYS.read(value, &mut parts, out);
        let PrometheusParts { server, query, pass, fail, each, partial } = parts;
        *slot = server.zip(query).zip(pass).map(|((server, query), pass)| {
            GateCheck::Prometheus(PrometheusCheck { server, query, pass, fail, each, partial })
        });
    },
    write: |of| match of {
        Some(GateCheck::Prometheus(of)) => PROMETHEUS_KEYS.write(&PrometheusParts {
            server: Some(of.server.clone()),
            query: Some(of.query.clone()),
            pass: Some(of.pass),
            fail: of.fail,
            each: of.each,
            partial: of.partial,
        }),
        _ => None,
    },
    form: |_| PROMETHEUS_KEYS.form(&no_query()).title("PrometheusGate"),
};
const HTTP: Special<Option<GateCheck>> = Special {
    read: |value, slot, out| {
        let mut parts = (None, Vec::new());
        HTTP_KEYS.read(value, &mut parts, out);
        let (endpoint, expect) = parts;
        *slot = endpoint.map(|endpoint| GateCheck::Http(HttpCheck { endpoint, expect }));
    },
    write: |of| match of {
        Some(GateCheck::Http(of)) => {
            HTTP_KEYS.write(&(Some(of.endpoint.clone()), of.expect.clone()))
        }
        _ => None,
    },
    form: |_| HTTP_KEYS.form(&(None, Vec::new())).title("HttpGate"),
};
const COMMAND: Special<Option<GateCheck>> = Special {
    read: |value, slot, out| {
        let mut run = None;
        COMMAND_KEYS.read(value, &mut run, out);
        *slot = run.map(|run| GateCheck::Command { run });
    },
    write: |of| match of {
        Some(GateCheck::Command { run }) => COMMAND_KEYS.write(&Some(run.clone())),
        _ => None,
    },
    form: |_| COMMAND_KEYS.form(&None).title("CommandGate"),
};

pub(super) const GATES: List<GatePolicy> = List {
    most: MOST_GATES,
    item: |value, out| {
        let mut parts = no_gate();
        let before = out.len();
        let section = GATE.open(value, &mut parts, out)?;
        let kinds: Vec<&str> = KINDS.into_iter().filter(|kind| section.has(kind)).collect();
        match kinds.as_slice() {
            [] if out.len() == before => {
                let say = "a gate has one of prometheus, http and command";
                out.push(value.bad(say).help("a check of an address is http: {endpoint: NAME}"));
            }
            [_, second, ..] => {
                let say = "a gate has only one of prometheus, http and command";
                out.push(section.fault(second, Code::Contradiction, say).help("write two gates"));
            }
            _ => {}
        }
        let GateParts { name, check, rest } = parts;
        Some(GatePolicy { name: name?, check: check?, ..rest })
    },
    print: |of| {
        let (name, check) = (Some(of.name.clone()), Some(of.check.clone()));
        GATE.pairs(&GateParts { name, check, rest: of.clone() })
    },
    form: || GATE.form(&no_gate()).title("Gate"),
};

fn no_gate() -> GateParts {
    let check = GateCheck::Command { run: Box::default() };
    let rest = GatePolicy::with_defaults(Box::default(), check);
    GateParts { name: None, check: None, rest }
}

const fn no_query() -> PrometheusParts {
    let partial = PartialAnswer::Refuse;
    PrometheusParts { server: None, query: None, pass: None, fail: None, each: None, partial }
}
