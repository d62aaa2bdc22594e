//! The limits of `limits.txt`: a line for each case, its name and the most instructions of a connection.

const TEXT: &str = include_str!("limits.txt");

/// The cases that have a limit, with it.
///
/// # Panics
/// When a line is not a name and a number.
pub(crate) fn all() -> impl Iterator<Item = (&'static str, u64)> {
    let lines = TEXT.lines().filter(|line| !line.starts_with('#') && !line.is_empty());
    lines.map(|line| {
        let (case, limit) = line.split_once(' ').expect("a name and a number");
        (case, limit.trim().replace('_', "").parse().expect("a number"))
    })
}

/// The limit of a case.
///
/// # Panics
/// When it has none.
#[allow(dead_code, reason = "the test that holds the file asks for none by name")]
pub(crate) fn of(case: &str) -> u64 {
    all().find(|(name, _)| *name == case).expect("every case has a limit").1
}
