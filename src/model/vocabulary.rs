//! Types with few values that have one name each, in every format and on every screen.

/// Every value with its name. A format whose names differ has a table of its own.
pub trait Vocabulary: Copy + PartialEq + 'static {
    /// Name of the type, for a format's schema.
    const NAME: &'static str;
    const WORDS: &'static [(&'static str, Self)];

    fn parse(word: &str) -> Option<Self> {
        Self::WORDS.iter().find(|(known, _)| *known == word).map(|(_, value)| *value)
    }
}

/// Declares such types: `ALL` and `WORDS` have the order of the list.
macro_rules! vocabulary {
    ($(
        $(#[$meta:meta])*
        $vis:vis enum $name:ident {
            $($(#[$about:meta])* $value:ident = $word:literal,)+
        }
    )+) => {$(
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
        $vis enum $name {
            $($(#[$about])* $value,)+
        }

        impl $name {
            pub const ALL: [Self; [$($word),+].len()] = [$(Self::$value),+];

            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$value => $word,)+
                }
            }
        }

        impl $crate::model::vocabulary::Vocabulary for $name {
            const NAME: &'static str = stringify!($name);
            const WORDS: &'static [(&'static str, Self)] = &[$(($word, Self::$value)),+];
        }
    )+};
}

pub(crate) use vocabulary;
