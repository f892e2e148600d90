//! One way to write an enum whose every value has a stable name and a sentence.
//!
//! Names travel through conditions, metric labels and command output, so name, sentence, list and
//! lookup come from one line per value: none of them can be forgotten when a value is added.

/// Declares an enum with `ALL`, `name()`, `from_name()`, `summary()` and `Display`.
macro_rules! closed_enum {
    (
        $(#[$meta:meta])*
        pub enum $type:ident {
            $( $variant:ident => $summary:literal, )+
        }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $type {
            $( #[doc = $summary] $variant, )+
        }

        impl $type {
            /// Every value, in the order of declaration.
            pub const ALL: &[Self] = &[$( Self::$variant, )+];

            /// The stable name, as people and metric labels see it.
            pub const fn name(self) -> &'static str {
                match self {
                    $( Self::$variant => stringify!($variant), )+
                }
            }

            /// The value of this exact name, if there is one.
            pub fn from_name(name: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|value| value.name() == name)
            }

            /// One sentence for people.
            pub const fn summary(self) -> &'static str {
                match self {
                    $( Self::$variant => $summary, )+
                }
            }
        }

        impl std::fmt::Display for $type {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(self.name())
            }
        }
    };
}

pub(crate) use closed_enum;
