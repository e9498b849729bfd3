//! Queries of Prometheus: read by their grammar, and held to the metrics there are.
//!
//! A part of the language, all that our own files use: what is not known here is refused, so a query in another style
//! needs its line here first.

use poolkeeper::telemetry::{FAMILIES, Family, MetricKind};

/// What an expression gives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Gives {
    Number,
    Series,
    Range,
    Text,
}

use Gives::{Number, Range, Series, Text};

const FUNCTIONS: &[(&str, &[Gives], Gives)] = &[
    ("rate", &[Range], Series),
    ("irate", &[Range], Series),
    ("increase", &[Range], Series),
    ("delta", &[Range], Series),
    ("deriv", &[Range], Series),
    ("max_over_time", &[Range], Series),
    ("min_over_time", &[Range], Series),
    ("avg_over_time", &[Range], Series),
    ("histogram_quantile", &[Number, Series], Series),
    ("absent", &[Series], Series),
    ("clamp_min", &[Series, Number], Series),
    ("clamp_max", &[Series, Number], Series),
    ("scalar", &[Series], Number),
    ("vector", &[Number], Series),
    ("time", &[], Number),
];
/// What only sums that grow are given to, and nothing else.
const OF_COUNTERS: &[&str] = &["rate", "irate", "increase"];
const AGGREGATES: &[&str] = &["sum", "min", "max", "avg", "count"];
/// With a number before what is aggregated.
const RANKS: &[&str] = &["topk", "bottomk", "quantile"];
/// Labels that Prometheus puts on every series itself.
const OF_PROMETHEUS: &[&str] = &["instance", "job"];
/// Weaker ones first.
const OPERATORS: &[&[&str]] = &[
    &["or"],
    &["and", "unless"],
    &["==", "!=", "<=", ">=", "<", ">"],
    &["+", "-"],
    &["*", "/", "%"],
];

/// What a sound query is made of.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Query {
    /// Each metric it reads, by its name in the query.
    pub metrics: Vec<String>,
    /// Labels that its series have.
    pub labels: Vec<String>,
}

/// The query, or what is wrong with it.
pub fn read(text: &str) -> Result<Query, String> {
    let mut reader = Reader { tokens: split(text)?, at: 0, calls: Vec::new() };
    let (gives, query) = reader.expression(0)?;
    match (reader.peek(), gives) {
        (None, Number | Series) => Ok(query),
        (None, _) => Err(format!("it gives no series and no number: {gives:?}")),
        (Some(more), _) => Err(format!("{more} is left over")),
    }
}

/// The family a metric belongs to, and the labels it has.
fn family(metric: &str) -> Result<(&'static Family, Vec<&'static str>), String> {
    let found = FAMILIES.iter().find_map(|family| {
        let (bare, more): (&str, &[&str]) = match metric.strip_prefix(family.name)? {
            "" if family.kind != MetricKind::Histogram => (metric, &[]),
            "_bucket" if family.kind == MetricKind::Histogram => (family.name, &["le"]),
            "_sum" | "_count" if family.kind == MetricKind::Histogram => (family.name, &[]),
            _ => return None,
        };
        (bare == family.name || more.is_empty())
            .then(|| (family, [family.labels, OF_PROMETHEUS, more].concat()))
    });
    found.ok_or_else(|| format!("there is no metric {metric}"))
}

/// Words, numbers, spans of time, texts (with their quotes) and signs.
fn split(text: &str) -> Result<Vec<&str>, String> {
    let (mut tokens, mut rest) = (Vec::new(), text.trim_start());
    while let Some(first) = rest.chars().next() {
        let word = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let length = match first {
            '"' => rest[1..].find('"').ok_or("a text without its end")? + 2,
            c if c.is_ascii_digit() => {
                rest.find(|c: char| !word(c) && c != '.').unwrap_or(rest.len())
            }
            c if word(c) => rest.find(|c| !word(c)).unwrap_or(rest.len()),
            _ if ["==", "!=", "<=", ">=", "=~", "!~"].iter().any(|s| rest.starts_with(s)) => 2,
            c if "+-*/%<>=(){}[],:".contains(c) => 1,
            other => return Err(format!("{other:?} has no place here")),
        };
        let (token, behind) = rest.split_at(length);
        tokens.push(token);
        rest = behind.trim_start();
    }
    Ok(tokens)
}

fn is_word(token: &str) -> bool {
    token.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
}

/// `5m`, `1h30m`
fn is_span(token: &str) -> bool {
    let mut rest = token;
    while !rest.is_empty() {
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        let (number, behind) = rest.split_at(digits);
        let unit = ["ms", "s", "m", "h", "d", "w"].iter().find(|unit| {
            behind.strip_prefix(**unit).is_some_and(|rest| !rest.starts_with(char::is_alphabetic))
        });
        let Some(unit) = unit.filter(|_| !number.is_empty()) else { return false };
        rest = &behind[unit.len()..];
    }
    !token.is_empty()
}

struct Reader<'a> {
    tokens: Vec<&'a str>,
    at: usize,
    /// The functions around what is read.
    calls: Vec<&'a str>,
}

type Read = Result<(Gives, Query), String>;

impl<'a> Reader<'a> {
    fn peek(&self) -> Option<&'a str> {
        self.tokens.get(self.at).copied()
    }

    fn next(&mut self) -> Result<&'a str, String> {
        let token = self.peek().ok_or("it ends too soon")?;
        self.at += 1;
        Ok(token)
    }

    fn takes(&mut self, token: &str) -> bool {
        let found = self.peek() == Some(token);
        self.at += usize::from(found);
        found
    }

    fn needs(&mut self, token: &str) -> Result<(), String> {
        match self.takes(token) {
            true => Ok(()),
            false => Err(format!("{token} is needed before {:?}", self.peek())),
        }
    }

    fn expression(&mut self, level: usize) -> Read {
        let Some(operators) = OPERATORS.get(level) else { return self.unary() };
        let (mut gives, mut query) = self.expression(level + 1)?;
        while let Some(sign) = self.peek().filter(|sign| operators.contains(sign)) {
            self.at += 1;
            let (right, other) = self.expression(level + 1)?;
            let sets = ["and", "or", "unless"].contains(&sign);
            gives = match (gives, right) {
                (Series, Series) => Series,
                (Series, Number) | (Number, Series) if !sets => Series,
                (Number, Number) if !sets && level > 2 => Number,
                pair => return Err(format!("{sign} does not go with {pair:?}")),
            };
            if gives == Series && !sets && !query.labels.is_empty() && !other.labels.is_empty() {
                let same = query.labels == other.labels;
                let differ = format!("{:?} and {:?}", query.labels, other.labels);
                same.then_some(()).ok_or(format!("{sign} matches nothing between {differ}"))?;
            }
            query.metrics.extend(other.metrics);
            query.labels.extend(other.labels);
            query.labels.sort();
            query.labels.dedup();
        }
        Ok((gives, query))
    }

    fn unary(&mut self) -> Read {
        if self.takes("-") {
            let (gives, query) = self.unary()?;
            return match gives {
                Number | Series => Ok((gives, query)),
                _ => Err("a sign before what is no number".to_owned()),
            };
        }
        let token = self.next()?;
        if token == "(" {
            let inside = self.expression(0)?;
            self.needs(")")?;
            return Ok(inside);
        }
        if token.starts_with('"') {
            return Ok((Text, Query::default()));
        }
        if token.starts_with(|c: char| c.is_ascii_digit()) {
            token.parse::<f64>().map_err(|_| format!("{token} is no number"))?;
            return Ok((Number, Query::default()));
        }
        if !is_word(token) {
            return Err(format!("{token} has no place here"));
        }
        if AGGREGATES.contains(&token) || RANKS.contains(&token) {
            return self.aggregate(token);
        }
        match self.peek() {
            Some("(") => self.call(token),
            _ => self.selector(token),
        }
    }

    fn aggregate(&mut self, name: &str) -> Read {
        let by = match self.takes("by") {
            true => Some(self.labels()?),
            false => None,
        };
        self.needs("(")?;
        if RANKS.contains(&name) {
            let (rank, _) = self.expression(0)?;
            if rank != Number {
                return Err(format!("{name} needs a number first"));
            }
            self.needs(",")?;
        }
        let (gives, mut query) = self.expression(0)?;
        self.needs(")")?;
        if gives != Series {
            return Err(format!("{name} of {gives:?}"));
        }
        if let Some(strange) = by.iter().flatten().find(|label| !query.labels.contains(label)) {
            return Err(format!("there is no label {strange} to go by in {:?}", query.labels));
        }
        if !RANKS.contains(&name) || by.is_some() {
            query.labels = by.unwrap_or_default();
            query.labels.sort();
        }
        Ok((Series, query))
    }

    fn labels(&mut self) -> Result<Vec<String>, String> {
        self.needs("(")?;
        let mut labels = Vec::new();
        loop {
            let label = self.next()?;
            if !is_word(label) {
                return Err(format!("{label} is no label"));
            }
            labels.push(label.to_owned());
            if self.takes(")") {
                return Ok(labels);
            }
            self.needs(",")?;
        }
    }

    fn call(&mut self, name: &'a str) -> Read {
        let known = FUNCTIONS.iter().find(|(known, ..)| *known == name);
        let (_, wants, gives) = known.ok_or_else(|| format!("there is no function {name}"))?;
        self.needs("(")?;
        self.calls.push(name);
        let mut query = Query::default();
        for (n, want) in wants.iter().enumerate() {
            if n > 0 {
                self.needs(",")?;
            }
            let (given, inside) = self.expression(0)?;
            if given != *want {
                return Err(format!("{name} needs {want:?}, and is given {given:?}"));
            }
            query.metrics.extend(inside.metrics);
            query.labels.extend(inside.labels);
        }
        self.calls.pop();
        self.needs(")")?;
        if name == "histogram_quantile" {
            let at = query.labels.iter().position(|label| label == "le");
            query.labels.remove(at.ok_or("histogram_quantile needs the label le")?);
        }
        Ok((*gives, query))
    }

    fn selector(&mut self, metric: &str) -> Read {
        let (family, labels) = family(metric)?;
        if self.takes("{") {
            while !self.takes("}") {
                let (label, sign, value) = (self.next()?, self.next()?, self.next()?);
                if !labels.contains(&label) {
                    return Err(format!("{metric} has no label {label}"));
                }
                if !["=", "!=", "=~", "!~"].contains(&sign) || !value.starts_with('"') {
                    return Err(format!("{label} is asked for as {sign} {value}"));
                }
                if self.peek() != Some("}") {
                    self.needs(",")?;
                }
            }
        }
        let ranged = self.takes("[");
        if ranged {
            let span = self.next()?;
            if !is_span(span) {
                return Err(format!("{span} is no span of time"));
            }
            self.needs("]")?;
        }
        let grows = family.kind != MetricKind::Gauge;
        let in_rate = self.calls.last().is_some_and(|call| OF_COUNTERS.contains(call));
        if grows != (ranged && in_rate) && (grows || in_rate) {
            return Err(format!("{metric} is a {}, and is not read as one", family.kind.name()));
        }
        let labels = labels.iter().map(|label| (*label).to_owned()).collect();
        let query = Query { metrics: vec![metric.to_owned()], labels };
        Ok((if ranged { Range } else { Series }, query))
    }
}

#[test]
fn sound_queries_are_read() {
    for (text, labels) in [
        ("poolkeeper_ready", &["instance", "job"][..]),
        ("max(poolkeeper_ready) < 1 or absent(poolkeeper_ready)", &["instance", "job"]),
        (
            "sum by (invariant) (increase(poolkeeper_invariant_violations_total[15m])) > 0",
            &["invariant"],
        ),
        (
            "time() - max by (pool) (poolkeeper_pool_last_turn_timestamp_seconds{pool=~\"a|b\"})",
            &["pool"],
        ),
        (
            "histogram_quantile(0.95, sum by (le) (rate(poolkeeper_turn_seconds_bucket[1h30m])))",
            &[],
        ),
        ("-(1 + 2) * 14 * 86400", &[]),
        ("bottomk(3, max by (pool) (poolkeeper_pool_total_machines))", &["pool"]),
    ] {
        assert_eq!(read(text).unwrap().labels, labels, "{text}");
    }
}

#[test]
fn unsound_queries_are_refused() {
    for (text, why) in [
        ("", "ends too soon"),
        ("poolkeeper_redy", "no metric"),
        ("poolkeeper_turn_seconds", "no metric"),
        ("poolkeeper_ready_bucket", "no metric"),
        ("poolkeeper_ready{pool=\"web\"}", "no label pool"),
        ("poolkeeper_pool_held{reason=failing}", "asked for"),
        ("poolkeeper_pool_held{reason=\"failing\"", "is needed"),
        ("poolkeeper_pool_held{reason=\"failing}", "without its end"),
        ("sum by (pol) (poolkeeper_pool_held)", "no label pol"),
        ("sum(poolkeeper_ready", ") is needed"),
        ("sum(poolkeeper_ready))", "left over"),
        ("poolkeeper_turns_total", "is a counter"),
        ("rate(poolkeeper_turns_total)", "is a counter"),
        ("rate(poolkeeper_ready[5m])", "is a gauge"),
        ("max_over_time(poolkeeper_ready)", "needs Range"),
        ("rate(poolkeeper_turns_total[5])", "no span"),
        ("rate(poolkeeper_turns_total[5q])", "no span"),
        ("max_over_time(poolkeeper_ready[5m]", ") is needed"),
        ("poolkeeper_ready[5m]", "no series"),
        ("ratio(poolkeeper_ready)", "no function"),
        ("1 == 1", "does not go"),
        ("1 or poolkeeper_ready", "does not go"),
        ("poolkeeper_ready > ", "ends too soon"),
        ("poolkeeper_ready poolkeeper_ready", "left over"),
        (
            "max by (pool) (poolkeeper_pool_held) / max by (reason) (poolkeeper_pool_held)",
            "matches nothing",
        ),
        ("poolkeeper_ready > $limit", "no place"),
    ] {
        let said = read(text).unwrap_err();
        assert!(said.contains(why), "{text}: {said}");
    }
}
