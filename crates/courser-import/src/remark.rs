//! What an import has to say of the original.

use std::fmt;

/// Something that is different.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Remark {
    /// Line of the original, from 1.
    pub line: usize,
    /// The setting as it stands there.
    pub setting: String,
    /// What becomes of it.
    pub effect: Effect,
    /// Why, or what there is instead.
    pub why: String,
}

/// What becomes of a setting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// It is not needed.
    NotNeeded,
    /// It does something else here.
    Differs,
    /// There is none, and what depends on it is not written.
    Unsupported,
}

impl fmt::Display for Remark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let effect = match self.effect {
            Effect::NotNeeded => "not needed",
            Effect::Differs => "differs",
            Effect::Unsupported => "UNSUPPORTED",
        };
        // A comment has no control characters (TOML 1.0, "Comment"), and a terminal should get none.
        let shown = |text: &str| text.replace(char::is_control, "?");
        write!(f, "line {}: {effect}: `{}`: {}", self.line, shown(&self.setting), shown(&self.why))
    }
}

/// The remarks on one configuration.
#[derive(Debug, Default)]
pub(crate) struct Remarks(Vec<Remark>);

impl Remarks {
    pub(crate) fn not_needed(&mut self, line: usize, setting: &str, why: &str) {
        self.add(Effect::NotNeeded, line, setting, why);
    }

    pub(crate) fn differs(&mut self, line: usize, setting: &str, why: &str) {
        self.add(Effect::Differs, line, setting, why);
    }

    pub(crate) fn unsupported(&mut self, line: usize, setting: &str, why: &str) {
        self.add(Effect::Unsupported, line, setting, why);
    }

    fn add(&mut self, effect: Effect, line: usize, setting: &str, why: &str) {
        let remark = Remark { line, setting: setting.to_owned(), effect, why: why.to_owned() };
        // One line may serve several listeners.
        if !self.0.contains(&remark) {
            self.0.push(remark);
        }
    }

    pub(crate) fn into_sorted(mut self) -> Vec<Remark> {
        self.0.sort_by_key(|remark| remark.line);
        self.0
    }
}
