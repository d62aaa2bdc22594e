//! Choices that are written by name.

/// An enum whose values are written by name in the configuration, in messages and in logs.
pub trait Named: Copy + Eq + 'static {
    /// Every value, in the order in which they are offered to people and, where it matters, preferred.
    const ALL: &'static [Self];

    /// The name under which it is shown.
    fn name(self) -> &'static str;

    /// Other names that are understood when read, never shown.
    fn aliases(self) -> &'static [&'static str];

    /// The value of that name or alias, whatever the case of its letters.
    fn from_name(text: &str) -> Option<Self> {
        let known = |name: &str| name.eq_ignore_ascii_case(text);
        Self::ALL
            .iter()
            .copied()
            .find(|one| known(one.name()) || one.aliases().iter().any(|alias| known(alias)))
    }
}

/// An enum of choices, each with its name and other names for it.
macro_rules! named {
    ($(#[$attribute:meta])* $type:ident {
        $($(#[$doc:meta])* $variant:ident = $name:literal $(| $alias:literal)*,)*
    }) => {
        $(#[$attribute])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum $type { $($(#[$doc])* $variant,)* }

        impl $crate::named::Named for $type {
            const ALL: &'static [Self] = &[$(Self::$variant,)*];

            fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }

            fn aliases(self) -> &'static [&'static str] {
                match self { $(Self::$variant => &[$($alias,)*],)* }
            }
        }
    };
}
pub(crate) use named;
