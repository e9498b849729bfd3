//! Parts of an encoded plan that other documents copy unchanged.

use serde::Deserialize;

use crate::cli::exit::{CommandFailure, Exit};

/// A plan without one of the parts is a bug: never a document that silently lacks them.
pub fn parts<'a, T: Deserialize<'a>>(plan: &'a str) -> Result<T, CommandFailure> {
    serde_json::from_str(plan).map_err(|error| {
        CommandFailure::new(Exit::Internal, "internal", format!("a part of the plan: {error}"))
            .help("this is a bug in Poolkeeper: report it with the snapshot or the pool file")
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    #[derive(Debug, Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Parts {
        next_check_at: Value,
    }

    #[test]
    fn a_missing_part_is_an_error() {
        let found: Parts = parts(r#"{"nextCheckAt":"x","more":1}"#).unwrap();
        assert_eq!(found.next_check_at, "x");
        let failed = parts::<Parts>(r#"{"next_check_at":"x"}"#).unwrap_err();
        assert!(failed.to_json().contains("missing field `nextCheckAt`"), "{}", failed.to_json());
    }
}
