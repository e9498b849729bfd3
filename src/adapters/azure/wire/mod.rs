//! ARM's JSON, as narrow as we need it. What is not read here is not looked at; what is missing or null is `None`.
//!
//! Never here: a meaning (that is `read` and `refusal`), a default for a number that was not shown, a write of what was
//! read. Lists of machines borrow from the page's bytes; texts inside `Option` and `Vec` borrow only as [`Text`].
//! Begin with [`Page`] and [`Vm`].

pub mod autoscale;
pub mod fault;
pub mod gallery;
pub mod lock;
pub mod set;
pub mod status;
pub mod supply;
pub mod vm;

use std::borrow::Cow;

use serde::Deserialize;

pub use fault::{Fault, Faults};
pub use set::ScaleSet;
pub use vm::Vm;

/// A text that borrows from the page even where serde would copy it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
pub struct Text<'a>(#[serde(borrow)] pub Cow<'a, str>);

impl Text<'_> {
    pub fn is(&self, other: &str) -> bool {
        self.0.eq_ignore_ascii_case(other)
    }
}

impl AsRef<str> for Text<'_> {
    fn as_ref(&self) -> &str {
        &self.0
    }
}

impl std::ops::Deref for Text<'_> {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

/// The text of an optional field, with an empty one taken for none.
pub fn some<'t>(text: Option<&'t Text<'_>>) -> Option<&'t str> {
    text.map(AsRef::as_ref).filter(|text| !text.is_empty())
}

/// One page of any list. Without `value` it is no list at all: what was sent is not what was asked for.
#[derive(Debug, Deserialize)]
#[serde(bound(deserialize = "T: Deserialize<'de>"))]
pub struct Page<'a, T> {
    pub value: Vec<T>,
    #[serde(borrow, default, rename = "nextLink")]
    pub next: Option<Text<'a>>,
}

impl<'a, T: Deserialize<'a>> Page<'a, T> {
    pub fn read(bytes: &'a [u8]) -> serde_json::Result<Self> {
        serde_json::from_slice(bytes)
    }
}
