//! The forms of values in a pool file: a duration, a percent, a word of a table, a list. Each reads and writes them.

use super::section::{Section, SectionResult, SectionValue};
use super::value_form::ValueForm;
use crate::api::v1::diagnostic::Diagnostic;
use crate::api::v1::node::NodeKind;
use crate::api::v1::wire::Pairs;
use serde::Serialize;

/// JSON whose keys keep their order.
#[derive(Serialize)]
#[serde(untagged)]
pub(super) enum OrderedJson {
    Text(String),
    Number(u32),
    Signed(i32),
    Decimal(f64),
    Flag(bool),
    List(Vec<OrderedJson>),
    Map(JsonPairs),
}

pub(super) type JsonPairs = Pairs<'static, OrderedJson>;

/// The form of a key's value.
pub(super) trait Form<T> {
    /// Reads it into `slot`, or notes its faults.
    fn read(&self, value: &SectionValue<'_>, slot: &mut T, out: &mut Vec<Diagnostic>);

    /// Reads a key over its default.
    fn read_key(&self, of: &Section<'_>, key: &str, slot: &mut T, out: &mut Vec<Diagnostic>) {
        if let Some(value) = of.get(key) {
            self.read(&value, slot, out);
        }
    }

    /// `None`: the key is left out.
    fn write(&self, of: &T) -> Option<OrderedJson>;

    /// The values that it takes, with these defaults inside them.
    fn form(&self, default: &T) -> ValueForm;
}

/// A form with at most one fault in each value.
pub(super) struct Scalar<T> {
    pub parse: fn(&SectionValue<'_>) -> SectionResult<T>,
    pub print: fn(&T) -> OrderedJson,
    pub form: fn() -> ValueForm,
}

impl<T> Scalar<T> {
    pub const fn new(
        parse: fn(&SectionValue<'_>) -> SectionResult<T>,
        print: fn(&T) -> OrderedJson,
        form: fn() -> ValueForm,
    ) -> Self {
        Self { parse, print, form }
    }
}

impl<T> Form<T> for Scalar<T> {
    fn read(&self, value: &SectionValue<'_>, slot: &mut T, out: &mut Vec<Diagnostic>) {
        match (self.parse)(value) {
            Ok(found) => *slot = found,
            Err(fault) => out.push(*fault),
        }
    }

    fn write(&self, of: &T) -> Option<OrderedJson> {
        Some((self.print)(of))
    }

    fn form(&self, _: &T) -> ValueForm {
        (self.form)()
    }
}

/// A value without a default. A faulty one leaves none.
pub(super) struct Maybe<T>(pub Scalar<T>);

impl<T> Form<Option<T>> for Maybe<T> {
    fn read(&self, value: &SectionValue<'_>, slot: &mut Option<T>, out: &mut Vec<Diagnostic>) {
        *slot = (self.0.parse)(value).map_err(|fault| out.push(*fault)).ok();
    }

    fn write(&self, of: &Option<T>) -> Option<OrderedJson> {
        of.as_ref().map(self.0.print)
    }

    fn form(&self, _: &Option<T>) -> ValueForm {
        (self.0.form)()
    }
}

/// A list of maps. One that cannot be built is left out.
pub(super) struct List<T> {
    pub most: usize,
    pub item: fn(&SectionValue<'_>, &mut Vec<Diagnostic>) -> Option<T>,
    pub print: fn(&T) -> JsonPairs,
    pub form: fn() -> ValueForm,
}

impl<T> Form<Vec<T>> for List<T> {
    fn read(&self, value: &SectionValue<'_>, slot: &mut Vec<T>, out: &mut Vec<Diagnostic>) {
        let NodeKind::List(items) = &value.node.kind else {
            out.push(*value.wrong_type("a list of maps"));
            return;
        };
        if items.len() > self.most {
            let say = format!("{} are more than the {} that are read", items.len(), self.most);
            out.push(*value.bad(say));
        }
        let each = items.iter().take(self.most).enumerate();
        *slot = each.filter_map(|(n, node)| (self.item)(&value.item(n, node), out)).collect();
    }

    fn write(&self, of: &Vec<T>) -> Option<OrderedJson> {
        let each = of.iter().map(|item| OrderedJson::Map((self.print)(item)));
        Some(OrderedJson::List(each.collect()))
    }

    fn form(&self, _: &Vec<T>) -> ValueForm {
        let most = (self.most != usize::MAX).then_some(self.most);
        (self.form)().list("a list of maps", most)
    }
}

/// A form that only one key has.
pub(super) struct Special<T> {
    pub read: fn(&SectionValue<'_>, &mut T, &mut Vec<Diagnostic>),
    pub write: fn(&T) -> Option<OrderedJson>,
    pub form: fn(&T) -> ValueForm,
}

impl<T> Form<T> for Special<T> {
    fn read(&self, value: &SectionValue<'_>, slot: &mut T, out: &mut Vec<Diagnostic>) {
        (self.read)(value, slot, out);
    }

    fn write(&self, of: &T) -> Option<OrderedJson> {
        (self.write)(of)
    }

    fn form(&self, default: &T) -> ValueForm {
        (self.form)(default)
    }
}

pub(super) fn text(of: &(impl ToString + ?Sized)) -> OrderedJson {
    OrderedJson::Text(of.to_string())
}
