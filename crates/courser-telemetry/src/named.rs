//! Enums whose values have published names.

macro_rules! named {
    ($(#[$attribute:meta])* $type:ident { $($(#[doc = $doc:literal])* $variant:ident = $name:literal,)* }) => {
        $(#[$attribute])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum $type { $($(#[doc = $doc])* $variant,)* }

        impl $type {
            /// Each value, in the order of declaration.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            /// Their published names.
            pub const NAMES: &'static [&'static str] = &[$($name,)*];

            /// The published name.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }
        }
    };
}
pub(crate) use named;
