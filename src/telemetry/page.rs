//! The metrics page for Prometheus, version 0.0.4 of its text format.

use std::fmt::Write;

use super::families::{Family, MetricKind};

/// Writes families one after another; the format requires each to occur once.
#[derive(Debug, Default)]
pub struct Exposition {
    text: String,
}

impl Exposition {
    /// A family with its samples: label values and a number.
    pub fn family<'v, L>(&mut self, family: &Family, samples: impl IntoIterator<Item = (L, f64)>)
    where
        L: AsRef<[&'v str]>,
    {
        self.head(family);
        for (values, number) in samples {
            self.text.push_str(family.name);
            self.labels(family.labels, values.as_ref(), None);
            self.number(number);
        }
    }

    /// A histogram without labels: the count for each bound, the count beyond the last one, and the sum.
    pub fn histogram(&mut self, family: &Family, bounds: &[f64], counts: &[u64], sum: f64) {
        self.head(family);
        let mut all = 0;
        for (n, count) in counts.iter().enumerate() {
            all += count;
            let bound = bounds.get(n).map_or_else(|| "+Inf".to_owned(), ToString::to_string);
            let _ = write!(self.text, "{}_bucket", family.name);
            self.labels(&[], &[], Some(&bound));
            self.number(all as f64);
        }
        let _ = write!(self.text, "{}_sum", family.name);
        self.number(sum);
        let _ = write!(self.text, "{}_count", family.name);
        self.number(all as f64);
    }

    pub fn finish(self) -> String {
        self.text
    }

    fn head(&mut self, family: &Family) {
        let Family { name, kind, help, .. } = family;
        debug_assert!(*kind != MetricKind::Histogram || family.labels.is_empty());
        let _ = writeln!(self.text, "# HELP {name} {help}\n# TYPE {name} {}", kind.name());
    }

    fn labels(&mut self, names: &[&str], values: &[&str], bound: Option<&str>) {
        let pairs = names.iter().zip(values).map(|(name, value)| (*name, *value));
        let mut sign = '{';
        for (name, value) in pairs.chain(bound.map(|bound| ("le", bound))) {
            let _ = write!(self.text, "{sign}{name}=\"");
            for letter in value.chars() {
                match letter {
                    '\\' => self.text.push_str("\\\\"),
                    '"' => self.text.push_str("\\\""),
                    '\n' => self.text.push_str("\\n"),
                    other => self.text.push(other),
                }
            }
            self.text.push('"');
            sign = ',';
        }
        if sign == ',' {
            self.text.push('}');
        }
    }

    fn number(&mut self, number: f64) {
        let _ = writeln!(self.text, " {number}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_as_the_format_wants_it() {
        let gauge = Family { name: "a", kind: MetricKind::Gauge, labels: &["pool"], help: "What." };
        let times = Family { name: "t", kind: MetricKind::Histogram, labels: &[], help: "Time." };
        let mut page = Exposition::default();
        page.family(&gauge, [(["w\"e\\b\n"], 3.0), (["x"], 0.5)]);
        page.histogram(&times, &[0.1, 1.0], &[2, 1, 4], 9.5);
        assert_eq!(
            page.finish(),
            "# HELP a What.\n# TYPE a gauge\na{pool=\"w\\\"e\\\\b\\n\"} 3\na{pool=\"x\"} 0.5\n\
             # HELP t Time.\n# TYPE t histogram\nt_bucket{le=\"0.1\"} 2\nt_bucket{le=\"1\"} 3\n\
             t_bucket{le=\"+Inf\"} 7\nt_sum 9.5\nt_count 7\n"
        );
    }
}
