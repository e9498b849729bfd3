//! The keys of a state. One table writes and reads them, so that neither side forgets one.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::VERSION;
use crate::api::v1::wire::{Text, Word};
use crate::model::ids::{AskId, EntryId, Key, Revision, Zone};
use crate::model::inventory::ModelFields;
use crate::model::journal::Refusal;
use crate::model::rollout::{
    BackOff, Blocked, Cause, Desired, Ended, Ending, Fall, LedgerLine, ModelMemory, PoolState,
    Progress, Rollout, Stage, Writing,
};
use crate::model::time::Time;

/// How a value of the model travels.
pub(super) trait Form: Sized {
    type Wire<'a>
    where
        Self: 'a;

    fn wire(&self) -> Self::Wire<'_>;
    fn back(wire: Self::Wire<'_>) -> Self;
}

macro_rules! copied {
    ($($ty:ty),*) => {$(
        impl Form for $ty {
            type Wire<'a> = $ty;

            fn wire(&self) -> $ty {
                *self
            }

            fn back(wire: $ty) -> Self {
                wire
            }
        }
    )*};
}

copied!(bool, u32, i32);

macro_rules! texts {
    ($($ty:ty),*) => {$(
        impl Form for $ty {
            type Wire<'a> = Text<'a>;

            fn wire(&self) -> Text<'_> {
                Text::new(self.as_str())
            }

            fn back(wire: Text<'_>) -> Self {
                Self::new(wire.as_str())
            }
        }
    )*};
}

texts!(AskId, EntryId, Key, Revision, Zone);

impl Form for Box<str> {
    type Wire<'a> = Text<'a>;

    fn wire(&self) -> Text<'_> {
        Text::new(self)
    }

    fn back(wire: Text<'_>) -> Self {
        wire.to_box()
    }
}

impl Form for Time {
    type Wire<'a> = i64;

    fn wire(&self) -> i64 {
        self.millis()
    }

    fn back(wire: i64) -> Self {
        Time::from_millis(wire)
    }
}

macro_rules! words {
    ($($ty:ty),*) => {$(
        impl Form for $ty {
            type Wire<'a> = Word<$ty>;

            fn wire(&self) -> Word<$ty> {
                Word(*self)
            }

            fn back(wire: Word<$ty>) -> Self {
                wire.0
            }
        }
    )*};
}

words!(Cause, Ending, Refusal);

impl<T: Form> Form for Option<T> {
    type Wire<'a>
        = Option<T::Wire<'a>>
    where
        T: 'a;

    fn wire(&self) -> Option<T::Wire<'_>> {
        self.as_ref().map(T::wire)
    }

    fn back(wire: Option<T::Wire<'_>>) -> Self {
        wire.map(T::back)
    }
}

impl<T: Form> Form for Vec<T> {
    type Wire<'a>
        = Vec<T::Wire<'a>>
    where
        T: 'a;

    fn wire(&self) -> Vec<T::Wire<'_>> {
        self.iter().map(T::wire).collect()
    }

    fn back(wire: Vec<T::Wire<'_>>) -> Self {
        wire.into_iter().map(T::back).collect()
    }
}

impl<A: Form, B: Form> Form for (A, B) {
    type Wire<'a>
        = (A::Wire<'a>, B::Wire<'a>)
    where
        A: 'a,
        B: 'a;

    fn wire(&self) -> (A::Wire<'_>, B::Wire<'_>) {
        (self.0.wire(), self.1.wire())
    }

    fn back(wire: (A::Wire<'_>, B::Wire<'_>)) -> Self {
        (A::back(wire.0), B::back(wire.1))
    }
}

impl Form for BTreeMap<Box<str>, Box<str>> {
    type Wire<'a> = BTreeMap<Text<'a>, Text<'a>>;

    fn wire(&self) -> BTreeMap<Text<'_>, Text<'_>> {
        self.iter().map(|(key, value)| (Text::new(key), Text::new(value))).collect()
    }

    fn back(wire: BTreeMap<Text<'_>, Text<'_>>) -> Self {
        wire.into_iter().map(|(key, value)| (key.to_box(), value.to_box())).collect()
    }
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// Keys that must be there, and those that may be left out at their default.
macro_rules! keys {
    ($($model:ident as $name:ident $(with $first:ident = $version:expr)?; {

        must { $($must:ident: $a:ty,)* }
        may { $($may:ident: $b:ty,)* }
    })*) => {$(
        #[derive(Debug, PartialEq, Serialize, Deserialize)]
        #[serde(rename_all = "camelCase", deny_unknown_fields)]
        pub(super) struct $name<'a> {
            $(pub $first: u32,)?
            $(#[serde(borrow)] $must: <$a as Form>::Wire<'a>,)*
            $(
                #[serde(borrow, default, skip_serializing_if = "is_default")]
                $may: <$b as Form>::Wire<'a>,
            )*
            #[serde(skip)]
            lives: std::marker::PhantomData<&'a ()>,
        }

        impl Form for $model {
            type Wire<'a> = $name<'a>;

            fn wire(&self) -> $name<'_> {
                // Names every field, so that a new one cannot be left out here.
                let $model { $($must,)* $($may,)* } = self;
                $name {
                    $($first: $version,)?
                    $($must: Form::wire($must),)*
                    $($may: Form::wire($may),)*
                    lives: std::marker::PhantomData,
                }
            }

            fn back(wire: $name<'_>) -> Self {
                Self { $($must: Form::back(wire.$must),)* $($may: Form::back(wire.$may),)* }
            }
        }
    )*};
}

keys! {
    PoolState as State with v = VERSION; {
        must {
            desired: Desired,
        }
        may {
            adopted: Option<Time>,
            surplus_confirmed: bool,
            advisory_held: bool,
            advisory_before: Option<Time>,
            mixed: bool,
            wanted: Option<Revision>,
            good: Vec<Revision>,
            model: ModelMemory,
            rollout: Option<Rollout>,
            last: Option<Ended>,
            refresh_before: Option<Time>,
            scheduled: Option<Time>,
            blocked: Vec<Blocked>,
            backoff: Vec<BackOff>,
            alone_until: Option<Time>,
            tombs: Vec<(Key, Time)>,
            casualties: Vec<(Key, Time)>,
            breaker_released: Option<Time>,
            surplus_removed: Vec<(Time, u32)>,
            written_off: Vec<Key>,
            model_accepted: Option<Revision>,
            hot_loop_released: Option<Revision>,
            honoured: Vec<AskId>,
        }
    }
    Desired as DesiredKeys; {
        must {
            count: u32,
        }
        may {
            waiting: Option<Fall>,
            falls: Vec<Fall>,
            explained: u32,
            ledger: Vec<LedgerLine>,
            others: Vec<Time>,
            above: Option<Time>,
            below: Option<Time>,
            shown: u32,
            shown_since: Option<Time>,
            confirmed: Option<Time>,
        }
    }
    Fall as FallKeys; {
        must {
            from: u32,
            to: u32,
            at: Time,
        }
        may {}
    }
    LedgerLine as LedgerKeys; {
        must {
            entry: EntryId,
            least: i32,
            most: i32,
        }
        may {
            ended: Option<Time>,
            folded: bool,
        }
    }
    ModelMemory as ModelKeys; {
        must {}
        may {
            seen: Option<Revision>,
            again: Option<Revision>,
            again_since: Option<Time>,
            wanted_fields: Option<ModelFields>,
            good_fields: Option<ModelFields>,
            writing: Option<Writing>,
            put_back_over: Option<Revision>,
        }
    }
    Writing as WritingKeys; {
        must {
            over: Revision,
            fields: ModelFields,
            at: Time,
        }
        may {
            put_back: bool,
        }
    }
    ModelFields as FieldKeys; {
        must {}
        may {
            image: Option<Box<str>>,
            vm_size: Option<Box<str>>,
            tags: BTreeMap<Box<str>, Box<str>>,
        }
    }
    Rollout as RolloutKeys; {
        must {
            cause: Cause,
            to: Revision,
            opened: Time,
            covered: u32,
            stage: Stage,
            progress: Progress,
        }
        may {
            from: Option<Revision>,
            failed: Vec<Key>,
            failed_in_a_row: u32,
            passed: u32,
            soaking: Option<Time>,
            approved: bool,
            tried: Vec<Key>,
        }
    }
    Progress as ProgressKeys; {
        must {
            at: Time,
            current_available: u32,
            outdated_left: u32,
        }
        may {}
    }
    Ended as EndedKeys; {
        must {
            cause: Cause,
            to: Revision,
            at: Time,
            how: Ending,
            done: u32,
            covered: u32,
            failed: u32,
        }
        may {}
    }
    Blocked as BlockedKeys; {
        must {
            key: Key,
            times: u32,
            at: Time,
            until: Time,
        }
        may {
            code: Option<Box<str>>,
        }
    }
    BackOff as BackOffKeys; {
        must {
            refusal: Refusal,
            times: u32,
            at: Time,
            until: Time,
        }
        may {
            zone: Option<Zone>,
            code: Option<Box<str>>,
            available_then: u32,
        }
    }
}

impl Default for ModelKeys<'_> {
    fn default() -> Self {
        Self {
            seen: None,
            again: None,
            again_since: None,
            wanted_fields: None,
            good_fields: None,
            writing: None,
            put_back_over: None,
            lives: std::marker::PhantomData,
        }
    }
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) enum StageWord<'a> {
    Going,
    Paused {
        #[serde(borrow)]
        by: Text<'a>,
        #[serde(borrow)]
        why: Text<'a>,
        at: i64,
    },
    Failing {
        #[serde(borrow)]
        why: Text<'a>,
        at: i64,
    },
    Baking {
        since: i64,
    },
}

impl Form for Stage {
    type Wire<'a> = StageWord<'a>;

    fn wire(&self) -> StageWord<'_> {
        match self {
            Stage::Going => StageWord::Going,
            Stage::Paused { by, why, at } => {
                StageWord::Paused { by: by.wire(), why: why.wire(), at: at.wire() }
            }
            Stage::Failing { why, at } => StageWord::Failing { why: why.wire(), at: at.wire() },
            Stage::Baking { since } => StageWord::Baking { since: since.wire() },
        }
    }

    fn back(wire: StageWord<'_>) -> Self {
        let time = Time::from_millis;
        match wire {
            StageWord::Going => Stage::Going,
            StageWord::Paused { by, why, at } => {
                Stage::Paused { by: by.to_box(), why: why.to_box(), at: time(at) }
            }
            StageWord::Failing { why, at } => Stage::Failing { why: why.to_box(), at: time(at) },
            StageWord::Baking { since } => Stage::Baking { since: time(since) },
        }
    }
}
