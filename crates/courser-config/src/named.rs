//! Choices that are written by name.

/// An enum whose values are written by name in the configuration, in messages and in logs.
pub trait Named: Copy + Eq + 'static {
    /// Every value, in the order in which they are offered to people and, where it matters, preferred.
    const ALL: &'static [Self];

    /// The name under which it is shown.
    fn name(self) -> &'static str;

    /// Other names that are understood when read, never shown.
    fn aliases(self) -> &'static [&'static str] {
        &[]
    }

    /// The value of that name or alias, whatever the case of its letters.
    fn from_name(text: &str) -> Option<Self> {
        let known = |name: &str| name.eq_ignore_ascii_case(text);
        Self::ALL
            .iter()
            .copied()
            .find(|one| known(one.name()) || one.aliases().iter().any(|alias| known(alias)))
    }
}
