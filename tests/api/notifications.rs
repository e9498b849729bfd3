//! Notifications of a pool file, right and wrong.

pub const GOOD_NOTIFICATIONS: &[&str] = &[
    "notifications: []",
    "notifications: [{webhook: ops}]",
    "notifications: [{webhook: ops, on: [frozen, started]}, {webhook: log, on: [waitingForApproval]}]",
];

/// The faults of each line, which is the sixth of its file.
pub const BAD_NOTIFICATIONS: &[(&str, &[&str])] = &[
    ("notifications: ops", &["6:16 notifications wrongType"]),
    ("notifications: [ops]", &["6:17 notifications[0] wrongType"]),
    ("notifications: [{on: [failed]}]", &["6:17 notifications[0].webhook missingKey"]),
    ("notifications: [{webhook: 7}]", &["6:27 notifications[0].webhook wrongType"]),
    ("notifications: [{webhook: a, on: []}]", &["6:34 notifications[0].on badValue"]),
    ("notifications: [{webhook: a, on: failed}]", &["6:34 notifications[0].on wrongType"]),
    ("notifications: [{webhook: a, on: [fail]}]", &["6:35 notifications[0].on[0] badValue"]),
    (
        "notifications: [{webhook: a, on: [failed, failed]}]",
        &["6:43 notifications[0].on[1] duplicateKey"],
    ),
    ("notifications: [{webhook: a}, {webhook: a}]", &["6:16 notifications contradiction"]),
];
