//! ARM's JSON, reduced to the needed fields. Other fields are ignored. A missing or null field is `None`.
//!
//! Never here: an interpretation (`read` and `refusal` do that), a default for a number that was not shown, writing
//! back what was read. Lists of machines borrow from the page's bytes. Texts inside `Option` and `Vec` borrow only as
//! [`BorrowedText`]. Begin with [`ListPage`] and [`ArmVm`].

pub mod autoscale;
pub mod fault;
pub mod gallery;
pub mod lock;
pub mod network;
pub mod set;
pub mod status;
pub mod supply;
pub mod vm;

use std::borrow::Cow;

use serde::Deserialize;

pub use fault::{ArmFault, ArmFaults};
pub use set::ArmScaleSet;
pub use vm::ArmVm;

/// A text that borrows from the page even where serde would copy it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
pub struct BorrowedText<'a>(#[serde(borrow)] pub Cow<'a, str>);

impl BorrowedText<'_> {
    pub fn is(&self, other: &str) -> bool {
        self.0.eq_ignore_ascii_case(other)
    }
}

impl AsRef<str> for BorrowedText<'_> {
    fn as_ref(&self) -> &str {
        &self.0
    }
}

impl std::ops::Deref for BorrowedText<'_> {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

/// The text of an optional field. An empty text counts as missing.
pub fn some<'t>(text: Option<&'t BorrowedText<'_>>) -> Option<&'t str> {
    text.map(AsRef::as_ref).filter(|text| !text.is_empty())
}

/// One page of any list. Without `value`, the response is not a list and parsing fails.
#[derive(Debug, Deserialize)]
#[serde(bound(deserialize = "'de: 'a, T: Deserialize<'de>"))]
pub struct ListPage<'a, T> {
    pub value: Vec<T>,
    #[serde(default, rename = "nextLink")]
    pub next: Option<BorrowedText<'a>>,
}

impl<'a, T: Deserialize<'a>> ListPage<'a, T> {
    pub fn read(bytes: &'a [u8]) -> serde_json::Result<Self> {
        serde_json::from_slice(bytes)
    }
}
