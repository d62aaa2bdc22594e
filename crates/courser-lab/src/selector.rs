//! Targets as the command line and suites name them.

use courser_load::url::Url;

use crate::error::Error;
use crate::target::{self, Definition, Preset};

/// A target that was asked for.
#[derive(Clone)]
pub struct TargetSelector {
    /// As it was written, with preset and label: the target's name in the record.
    pub name: String,
    /// Which of its configurations.
    pub preset: Preset,
    /// One that is not ours to start.
    pub url: Option<String>,
}

impl TargetSelector {
    /// `haproxy`, `haproxy:stock`, `haproxy@again`, `external=https://…`.
    pub fn parse(text: &str) -> Result<Self, Error> {
        if let Some((name, url)) = text.split_once('=') {
            let _: Url = url.parse().map_err(|why| Error::input(format!("{text}: {why}")))?;
            return Ok(Self { name: name.to_owned(), preset: Preset::Tuned, url: Some(url.to_owned()) });
        }
        let words = text.split('@').next().unwrap_or(text);
        let preset = match words.split_once(':').map_or("tuned", |(_, preset)| preset) {
            "tuned" => Preset::Tuned,
            "stock" => Preset::Stock,
            other => {
                return Err(Error::input(format!("{text}: a preset is `stock` or `tuned`, not {other:?}")));
            }
        };
        find(definition_of(text)).map_err(Error::input)?;
        Ok(Self { name: text.to_owned(), preset, url: None })
    }
}

/// The name of a target's definition, without preset and label.
pub fn definition_of(name: &str) -> &str {
    name.split([':', '@']).next().unwrap_or(name)
}

/// Whether there is such a target and preset.
///
/// # Errors
/// What is wrong with the name, and which is the nearest.
pub fn check(name: &str) -> Result<(), String> {
    TargetSelector::parse(name).map(drop).map_err(|why| why.to_string())
}

/// The definition of a target.
pub fn find(name: &str) -> Result<&'static Definition, String> {
    let known = || target::catalogue().iter();
    known().find(|definition| definition.name == name).ok_or_else(|| {
        let nearest = known().min_by_key(|definition| strsim::damerau_levenshtein(&definition.name, name));
        let nearest = nearest.map(|definition| definition.name.as_str()).unwrap_or_default();
        format!("no target is called {name:?}: did you mean {nearest}? `courser-bench targets` lists them; one that is \
                 not ours to start is given as {name}=https://host:port")
    })
}
