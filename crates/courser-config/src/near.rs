//! The nearest known name to one that is not known.

/// The candidate a person most likely meant, if any is near enough to be worth naming.
///
/// Near enough: a third of the letters may differ, so of two letters none. Case and the kind of dash do not
/// count.
pub fn nearest<'a>(text: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let plain = |text: &str| text.to_ascii_lowercase().replace('-', "_");
    let text = plain(text);
    let distance = |candidate: &&str| strsim::damerau_levenshtein(&text, &plain(candidate));
    let best = candidates.into_iter().min_by_key(distance)?;
    (distance(&best) <= text.chars().count() / 3).then_some(best)
}

/// A help line with the nearest candidate, or else with all of them.
pub(crate) fn suggest<'a>(text: &str, candidates: impl IntoIterator<Item = &'a str> + Clone) -> String {
    match nearest(text, candidates.clone()) {
        Some(name) => format!("did you mean `{name}`?"),
        None => format!("one of {}", list(candidates)),
    }
}

/// Names in backquotes, with commas.
pub(crate) fn list<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    names.into_iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_is_found_and_a_stranger_is_not() {
        assert_eq!(nearest("certs", ["cert", "backend"]), Some("cert"));
        assert_eq!(nearest("Drain-Timeout", ["drain_timeout", "idle_timeout"]), Some("drain_timeout"));
        assert_eq!(nearest("zebra", ["cert", "backend"]), None);
        assert_eq!(nearest("x", []), None);
    }

    #[test]
    fn between_very_short_names_nobody_can_guess() {
        assert_eq!(nearest("v3", ["v1", "v2"]), None);
        assert_eq!(suggest("v3", ["v1", "v2"]), "one of `v1`, `v2`");
    }
}
