//! Types with few values that have one name each.

/// Declares such types.
macro_rules! named {
    ($(
        $(#[$meta:meta])*
        pub enum $name:ident {
            $($(#[$about:meta])* $value:ident = $word:literal,)+
        }
    )+) => {$(
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
        pub enum $name {
            $($(#[$about])* $value,)+
        }

        impl $name {
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$value => $word,)+
                }
            }
        }
    )+};
}

pub(super) use named;
