//! Notices that are not delivered yet.

use super::codec::{Form, keys};
use crate::model::notice::{Notice, NoticeDetail, NoticeKind, NoticeRollout};
use crate::model::plan::{RolloutPhase, WaitKind};
use crate::model::rollout::RolloutCause;
use crate::model::time::Time;

keys! {
    Notice as NoticeKeys with v; {
        must {
            id: Box<str>,
            kind: NoticeKind,
            at: Time,
            message: Box<str>,
        }
        may {
            rollout: Option<NoticeRollout>,
            detail: NoticeDetail,
        }
    }
    NoticeRollout as RolloutKeys; {
        must {
            to: Box<str>,
            phase: RolloutPhase,
            cause: RolloutCause,
        }
        may {
            from: Option<Box<str>>,
            opened: Option<Time>,
        }
    }
    NoticeDetail as DetailKeys; {
        must {}
        may {
            by: Option<Box<str>>,
            why: Option<Box<str>>,
            what: Option<WaitKind>,
            number: Option<u32>,
            revision: Option<Box<str>>,
            done: Option<u32>,
            covered: Option<u32>,
            failed: Option<u32>,
            invariant: Option<u8>,
        }
    }
}
