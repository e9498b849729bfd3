//! What the numbers of a query mean for a gate.

use crate::model::facts::Verdict;
use crate::model::gate::{EachSeries, PrometheusCheck};
use crate::model::size::Decimal;
use crate::observe::{GateQuestion, GateReading, MetricFault, ReadSeries, SeriesQuestion};

pub(super) async fn measure(
    server: &impl ReadSeries,
    check: &PrometheusCheck,
    of: GateQuestion<'_>,
) -> GateReading {
    let asked = server.values(SeriesQuestion {
        query: &check.query,
        at: of.at,
        timeout: of.timeout,
        partial: check.partial,
    });
    match asked.await {
        Ok(values) => GateReading::new(check.verdict(&values), say(check, &values)),
        Err(fault) => GateReading::unknown(format!("metric server {}: {fault}", check.server)),
    }
}

fn say(check: &PrometheusCheck, values: &[Decimal]) -> String {
    match (values, check.each) {
        ([], _) => MetricFault::no_data().to_string(),
        ([value], _) => one(check, *value),
        (_, None) => {
            let fault = MetricFault::several(values.len());
            format!("{fault}, or write in each whether all or any of them must pass")
        }
        (_, Some(each)) => several(check, each, values),
    }
}

fn one(check: &PrometheusCheck, value: Decimal) -> String {
    let (number, pass) = (number(value), check.pass);
    match (check.verdict(&[value]), check.fail) {
        (Verdict::Pass, _) => format!("{number} is {pass}"),
        (Verdict::Fail, Some(fail)) => format!("{number} is {fail}"),
        (_, Some(fail)) => format!("{number} is neither {pass} nor {fail}"),
        (_, None) => format!("{number} is not {pass}"),
    }
}

/// How many pass, and one of those that decide otherwise.
fn several(check: &PrometheusCheck, each: EachSeries, values: &[Decimal]) -> String {
    let of_one = |value: &&Decimal| check.verdict(&[**value]);
    let pass = values.iter().filter(|value| of_one(value) == Verdict::Pass).count();
    let other = |verdict| values.iter().find(|value| of_one(value) == verdict);
    let other = other(Verdict::Fail).or_else(|| other(Verdict::Unknown));
    let example = other.map_or(String::new(), |value| format!("; {}", one(check, *value)));
    format!("{pass} of {} series pass, and {} must{example}", values.len(), each.name())
}

/// A number that is short, however large or small it is.
fn number(value: Decimal) -> String {
    let value = value.get();
    match value.abs() {
        0.0 | 1e-6..1e15 => value.to_string(),
        _ => format!("{value:e}"),
    }
}
