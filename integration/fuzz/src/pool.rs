//! Pool files, by the reader that `validate` and `serve` use.

use poolkeeper::api::v1::pool::{PoolDocuments, read_inside, to_json};

use crate::http::kit;
use crate::{bounded, calendar};

pub fn read(input: &[u8]) {
    let (policies, faults) = PoolDocuments::default().read_file(input, "pool.yaml");
    assert!(!policies.is_empty() || !faults.is_empty(), "no pool and no fault");
    for fault in &faults {
        assert!(fault.line >= 1 && fault.column >= 1, "{fault}");
        bounded(fault);
    }
    for policy in &policies {
        let written = to_json(policy);
        assert_eq!(read_inside(&written).as_ref(), Ok(policy), "{written}");
        let (again, faults) = PoolDocuments::default().read_file(written.as_bytes(), "pool.json");
        assert_eq!((again.as_slice(), faults.as_slice()), (std::slice::from_ref(policy), &[][..]));
        calendar::check(&policy.windows, kit::NOW);
    }
}
