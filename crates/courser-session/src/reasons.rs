//! Enums of reasons: each has a name for machines and a sentence for people.

/// Makes an enum of `reason = "name", "sentence";`.
#[doc(hidden)]
#[macro_export]
macro_rules! reasons {
    ($(#[$attribute:meta])* $type:ident { $($(#[doc = $doc:literal])* $reason:ident = $name:literal, $sentence:literal;)* }) => {
        $(#[$attribute])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum $type { $($(#[doc = $doc])* $reason,)* }

        impl $type {
            /// Every reason, in the order of declaration.
            pub const ALL: [Self; [$($name),*].len()] = [$(Self::$reason,)*];

            /// The reason's name in logs and metrics: snake case, and never changed once published.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$reason => $name,)* }
            }
        }

        impl std::fmt::Display for $type {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(match self { $(Self::$reason => $sentence,)* })
            }
        }
    };
}
