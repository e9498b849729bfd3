//! The size in a pool file: a number, the scale set's own, or profiles.

use serde_json::json;

use super::form::*;
use super::scalar::*;
use super::section::{Section, SectionResult, SectionValue};
use super::table::{Key, KeyTable, tables};
use super::value_form::{KeyReference, ValueForm};
use crate::api::v1::diagnostic::{Code, Diagnostic, quote};
use crate::api::v1::node::NodeKind;
use crate::model::calendar::{Cron, ScheduleZone};
use crate::model::ids::PoolName;
use crate::model::policy::{Draft, Owner};
use crate::model::size::{
    CronSize, Decimal, MetricMode, MetricSize, ShareSize, SizeProfile, SizeSource,
};
use crate::model::time::Span;

/// A hundred times what a scale set holds: other groups may hold more, and a typing error is still caught.
const MOST_COUNT: u32 = 100_000;
/// More than a person can keep in mind; every turn asks each of them.
const MOST_PROFILES: usize = 32;
const MOST_PRIORITY: u32 = 1_000;
/// Longest query; Prometheus itself takes as much in an address.
pub(super) const LONGEST_QUERY: usize = 4_096;
/// The kinds of a profile; it has one of them.
const KINDS: [&str; 4] = ["static", "cron", "metric", "share"];

type ProfileParts = (Option<Box<str>>, u32, Option<SizeSource>);
type CronParts = (Option<Cron>, Option<Cron>, ScheduleZone, Option<u32>);
type MetricParts = (Option<Box<str>>, Option<Box<str>>, MetricMode, Option<Decimal>, u32, Span);

tables! {
    REPLICAS(d: Draft) { check: check, unset: &["count", "min", "max"] } = {
        /// What sets the size. pool: this file. scaleSet: the capacity of the scale set, which an autoscaler or a person
        /// changes.
        "owner": word::<Owner>() => d.owner, like "pool";
        /// The desired number of machines. With owner pool either it or profiles is needed; with owner scaleSet neither
        /// is allowed.
        "count": COUNT => d.count, if d.owner == Owner::Pool && d.size.profiles.is_empty(), like 30;
        /// The fewest machines that profiles may ask for. It is needed with profiles.
        "min": COUNT => d.size.min, if d.has_profiles(), like 2;
        /// The most machines that profiles may ask for. It is needed with profiles.
        "max": COUNT => d.size.max, if d.has_profiles(), like 20;
        /// Whether the pool only shows what its profiles say, and keeps its size.
        "preview": FLAG => d.size.preview, if d.has_profiles(), like true;
        /// Who says how many: the profile of the highest priority that has an opinion; of equals, the larger number.
        "profiles": PROFILES => d.size.profiles, if d.has_profiles(), like [
            {"name": "base", "static": {"count": 2}},
            {"name": "day", "priority": 1, "cron": {"start": "0 7 * * mon-fri", "end": "0 19 * * mon-fri", "count": 8}}
        ];
    }
    PROFILE(p: ProfileParts) = {
        /// The name of the profile in status, plan and history. No other profile of the pool has it.
        required "name": Maybe(line::<LONGEST_NAME>()) => p.0, like "day";
        /// The profile of the highest priority speaks.
        "priority": whole::<0, MOST_PRIORITY>() => p.1, like 10;
        /// A number that always holds.
        "static": STATIC => p.2, if matches!(p.2, Some(SizeSource::Static(_))), like {"count": 2};
        /// A number from each start until the end after it.
        "cron": CRON_SIZE => p.2, if matches!(p.2, Some(SizeSource::Cron(_))),
            like {"start": "0 7 * * mon-fri", "end": "0 19 * * mon-fri", "timeZone": "Europe/Berlin", "count": 8};
        /// As many machines as keep a metric at its target.
        "metric": METRIC => p.2, if matches!(p.2, Some(SizeSource::Metric(_))),
            like {"server": "main", "query": "sum(queue_length)", "mode": "total", "target": 100};
        /// A part of the machines that served in other pools when the part was last raised above 0%.
        "share": SHARE => p.2, if matches!(p.2, Some(SizeSource::Share(_))),
            like {"of": ["web-blue"], "percent": "10%"};
    }
    STATIC_KEYS(count: Option<u32>) = {
        /// The number of machines.
        required "count": Maybe(COUNT) => *count, like 2;
    }
    CRON_KEYS(c: CronParts) = {
        /// When the number begins to hold.
        required "start": Maybe(CRON) => c.0, like "0 7 * * mon-fri";
        /// When it ends. A start or an end that a clock change skips is at that change.
        required "end": Maybe(CRON) => c.1, like "0 19 * * mon-fri";
        /// The time zone of both patterns.
        "timeZone": ZONE => c.2, like "Europe/Berlin";
        /// The number of machines in that time.
        required "count": Maybe(COUNT) => c.3, like 8;
    }
    METRIC_KEYS(m: MetricParts) = {
        /// The name of a metric server in the settings of the daemon.
        required "server": Maybe(line::<LONGEST_NAME>()) => m.0, like "main";
        /// A query whose answer is one number.
        required "query": Maybe(line::<LONGEST_QUERY>()) => m.1, like "sum(queue_length)";
        /// What the number is about. average: one serving machine. total: all machines together.
        "mode": word::<MetricMode>() => m.2, like "total";
        /// What one machine is to carry.
        required "target": Maybe(TARGET) => m.3, like 100;
        /// So far from its target, the metric changes nothing.
        "tolerance": PERCENT => m.4, like "10%";
        /// How long a smaller number must last before the size falls to it.
        "stabilise": DURATION => m.5, like "5m";
    }
    SHARE_KEYS(s: (Vec<PoolName>, Option<u32>)) = {
        /// The other pools.
        required "of": POOLS => s.0, like ["web-blue"];
        /// How many of their machines. 0% ends the share: its next number is taken anew.
        required "percent": Maybe(PERCENT) => s.1, like "10%";
    }
}

pub(super) const COUNT: Scalar<u32> = whole::<0, MOST_COUNT>();
const TARGET: Scalar<Decimal> = Scalar::new(
    target,
    |of| OrderedJson::Decimal(of.get()),
    || {
        let schema = json!({ "type": "number", "exclusiveMinimum": 0 });
        ValueForm::new("a number above 0", schema)
    },
);
const POOLS: Scalar<Vec<PoolName>> = Scalar::new(
    pools,
    |of| OrderedJson::List(of.iter().map(|name| text(name.as_str())).collect()),
    || (NAME.form)().list("a list of pools", Some(MOST_PROFILES)),
);

const STATIC: Special<Option<SizeSource>> = Special {
    read: |value, slot, out| {
        let mut count = None;
        STATIC_KEYS.read(value, &mut count, out);
        *slot = count.map(SizeSource::Static);
    },
    write: |of| match of {
        Some(SizeSource::Static(count)) => STATIC_KEYS.write(&Some(*count)),
        _ => None,
    },
    form: |_| STATIC_KEYS.form(&None).title("StaticSize"),
};
const CRON_SIZE: Special<Option<SizeSource>> = Special {
    read: cron_size,
    write: |of| match of {
        Some(SizeSource::Cron(of)) => {
            let (start, end) = (Some(of.start.clone()), Some(of.end.clone()));
            CRON_KEYS.write(&(start, end, of.zone.clone(), Some(of.count)))
        }
        _ => None,
    },
    form: |_| CRON_KEYS.form(&no_cron()).title("CronSize"),
};
const METRIC: Special<Option<SizeSource>> = Special {
    read: |value, slot, out| {
        let mut parts = no_metric();
        METRIC_KEYS.read(value, &mut parts, out);
        let (server, query, mode, target, tolerance_percent, stabilise) = parts;
        *slot = server.zip(query).zip(target).map(|((server, query), target)| {
            let of = MetricSize { server, query, mode, target, tolerance_percent, stabilise };
            SizeSource::Metric(of)
        });
    },
    write: |of| match of {
        Some(SizeSource::Metric(of)) => METRIC_KEYS.write(&(
            Some(of.server.clone()),
            Some(of.query.clone()),
            of.mode,
            Some(of.target),
            of.tolerance_percent,
            of.stabilise,
        )),
        _ => None,
    },
    form: |_| METRIC_KEYS.form(&no_metric()).title("MetricSize"),
};
const SHARE: Special<Option<SizeSource>> = Special {
    read: |value, slot, out| {
        let mut parts = (Vec::new(), None);
        SHARE_KEYS.read(value, &mut parts, out);
        let (of, percent) = parts;
        let known = percent.filter(|_| !of.is_empty());
        *slot = known.map(|percent| SizeSource::Share(ShareSize { of, percent }));
    },
    write: |of| match of {
        Some(SizeSource::Share(of)) => SHARE_KEYS.write(&(of.of.clone(), Some(of.percent))),
        _ => None,
    },
    form: |_| SHARE_KEYS.form(&(Vec::new(), None)).title("ShareSize"),
};

const PROFILES: List<SizeProfile> = List {
    most: MOST_PROFILES,
    item: |value, out| {
        let mut parts = (None, 0, None);
        let before = out.len();
        let section = PROFILE.open(value, &mut parts, out)?;
        let kinds: Vec<&str> = KINDS.into_iter().filter(|kind| section.has(kind)).collect();
        match kinds.as_slice() {
            [] if out.len() == before => {
                let say = "a profile has one of static, cron, metric and share";
                let fault = value.bad(say);
                out.push(fault.help("a number that always holds is static: {count: 2}"));
            }
            [_, second, ..] => {
                let say = "a profile has only one of static, cron, metric and share";
                out.push(
                    section.fault(second, Code::Contradiction, say).help("write two profiles"),
                );
            }
            _ => {}
        }
        let (name, priority, source) = parts;
        Some(SizeProfile { name: name?, priority, source: source? })
    },
    print: |of| PROFILE.pairs(&(Some(of.name.clone()), of.priority, Some(of.source.clone()))),
    form: || PROFILE.form(&(None, 0, None)).title("SizeProfile"),
};

fn no_cron() -> CronParts {
    (None, None, ScheduleZone::utc(), None)
}

fn no_metric() -> MetricParts {
    (None, None, MetricMode::Average, None, 10, Span::minutes(5))
}

fn cron_size(value: &SectionValue<'_>, slot: &mut Option<SizeSource>, out: &mut Vec<Diagnostic>) {
    let mut parts = no_cron();
    let Some(section) = CRON_KEYS.open(value, &mut parts, out) else { return };
    let (Some(start), Some(end), zone, Some(count)) = parts else { return };
    if start == end {
        let say = "it ends when it starts, so it would never hold";
        out.push(section.fault("end", Code::Contradiction, say));
        return;
    }
    *slot = Some(SizeSource::Cron(CronSize { start, end, zone, count }));
}

fn target(value: &SectionValue<'_>) -> SectionResult<Decimal> {
    let NodeKind::Number(text) = &value.node.kind else {
        return Err(value.wrong_type("a number above 0"));
    };
    let found = text.parse().ok().and_then(Decimal::new).filter(|found| found.get() > 0.0);
    found.ok_or_else(|| value.bad(format!("{} is not a number above 0", quote(text))))
}

fn pools(value: &SectionValue<'_>) -> SectionResult<Vec<PoolName>> {
    let NodeKind::List(items) = &value.node.kind else {
        return Err(value.wrong_type("a list of pools"));
    };
    if items.is_empty() || items.len() > MOST_PROFILES {
        return Err(value.bad(format!("must name 1 to {MOST_PROFILES} pools")));
    }
    let each = items.iter().enumerate();
    each.map(|(n, node)| (NAME.parse)(&value.item(n, node))).collect()
}

/// Who owns the size decides which keys the file must have, and which it must not.
fn check(replicas: &Section<'_>, draft: &mut Draft, out: &mut Vec<Diagnostic>) {
    let is_clear = replicas.get("owner").is_none_or(|value| one_of::<Owner>(&value).is_ok());
    let mut refuse = |keys: &[&str], say: &str, help: &str| {
        for key in keys.iter().filter(|key| replicas.has(key)) {
            out.push(replicas.fault(key, Code::Contradiction, say).help(help));
        }
    };
    if draft.owner == Owner::ScaleSet {
        let say = "the scale set says how many, so the file cannot";
        refuse(&["count", "profiles", "min", "max"], say, "leave it out, or write owner: pool");
    } else if replicas.has("profiles") {
        let say = "profiles say how many, so no count can be given";
        refuse(
            &["count"],
            say,
            "leave it out, or add the profile {name: base, static: {count: 2}}",
        );
        for key in ["min", "max"] {
            REPLICAS.require(replicas, key, out);
        }
        let empty = |value: &SectionValue<'_>| matches!(&value.node.kind, NodeKind::List(items) if items.is_empty());
        if let Some(value) = replicas.get("profiles").filter(empty) {
            let help =
                "write a count in its place, or a profile such as {name: base, static: {count: 2}}";
            out.push(value.bad("must have a profile").help(help));
        }
    } else {
        // A client that writes every default says `preview: false`.
        let keys =
            if draft.size.preview { &["min", "max", "preview"][..] } else { &["min", "max"] };
        refuse(keys, "it is about profiles, and there are none", "leave it out");
        if is_clear {
            REPLICAS.require(replicas, "count", out);
        }
    }
}
