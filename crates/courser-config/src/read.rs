//! From a value as written to one of the right kind, or to the problems with it.

use std::ops::RangeInclusive;
use std::time::Duration;

use crate::named::Named;
use crate::near::{nearest, suggest};
use crate::problem::{Problem, Problems};
use crate::source::SourceSpan;
use crate::units::{self, Unreadable};
use crate::value::{Literal, Value};

/// Something and where it was written.
#[derive(Debug, Clone)]
pub struct Located<T> {
    /// It.
    pub value: T,
    /// Where it was written, for [`Problem::at`].
    pub origin: SourceSpan,
}

/// The same value is the same setting, wherever it was written.
impl<T: PartialEq> PartialEq for Located<T> {
    fn eq(&self, other: &Self) -> bool {
        self.value == other.value
    }
}

impl<T: Eq> Eq for Located<T> {}

pub(crate) fn boolean(value: &Value) -> Result<bool, Problems> {
    match value.literal {
        Literal::Boolean(yes) => Ok(yes),
        _ => Err(wrong_kind(value, "`true` or `false`")),
    }
}

pub(crate) fn count(value: &Value, range: RangeInclusive<u32>) -> Result<u32, Problems> {
    let Literal::Integer(number) = value.literal else { return Err(wrong_kind(value, "a whole number")) };
    match u32::try_from(number) {
        Ok(number) if range.contains(&number) => Ok(number),
        _ => {
            let message = format!("`{}` is out of range", value.written());
            Err(Problem::at(&value.origin, message, None)
                .help(format!("from {} to {}", range.start(), range.end()))
                .into())
        }
    }
}

/// Bytes.
pub(crate) fn size(value: &Value, least: &str) -> Result<u64, Problems> {
    let bytes = match &value.literal {
        Literal::Text(text) => units::size(text).map_err(|error| unreadable(value, error))?,
        Literal::Integer(number) => {
            u64::try_from(*number).map_err(|_| wrong_kind(value, "a size such as `64MiB`"))?
        }
        _ => return Err(wrong_kind(value, "a size such as `64MiB`")),
    };
    if units::size(least).is_ok_and(|least| bytes < least) {
        let message = format!("the size `{}` is too small", value.written());
        return Err(Problem::at(&value.origin, message, None).help(format!("at least `{least}`")).into());
    }
    Ok(bytes)
}

/// Longer than zero and at most `most`.
pub(crate) fn duration(value: &Value, most: &str) -> Result<Duration, Problems> {
    let duration = match &value.literal {
        Literal::Text(text) => units::duration(text).map_err(|error| unreadable(value, error))?,
        Literal::Integer(number) => {
            let message = format!("the duration `{number}` has no unit");
            let help = format!("write it as a string with a unit: `\"{number}s\"`");
            return Err(Problem::at(&value.origin, message, Some(help)).into());
        }
        _ => return Err(wrong_kind(value, "a duration such as `\"30s\"`")),
    };
    if duration.is_zero() {
        let help = "the shortest is `1ms`";
        return Err(Problem::at(&value.origin, "a duration of zero is not allowed", None).help(help).into());
    }
    if units::duration(most).is_ok_and(|most| duration > most) {
        let message = format!("the duration `{}` is too long", value.written());
        return Err(Problem::at(&value.origin, message, None).help(format!("at most `{most}`")).into());
    }
    Ok(duration)
}

pub(crate) fn text<'a>(value: &'a Value, what: &str) -> Result<&'a str, Problems> {
    match &value.literal {
        Literal::Text(text) => Ok(text),
        _ => Err(wrong_kind(value, &format!("a string ({what})"))),
    }
}

/// One of the names of `E`; `what` is the field's word for it.
pub(crate) fn named<E: Named>(value: &Value, what: &str) -> Result<E, Problems> {
    let text = text(value, what)?;
    E::from_name(text).ok_or_else(|| {
        let names = E::ALL.iter().map(|one| one.name());
        let aliases = E::ALL.iter().flat_map(|one| one.aliases().iter().copied());
        let help = match nearest(text, names.clone().chain(aliases)) {
            Some(name) => format!("did you mean `{name}`?"),
            None => suggest(text, names),
        };
        Problem::at(&value.origin, format!("unknown {what} `{text}`"), Some(help)).into()
    })
}

/// A list whose items `read` understands; a single item may stand without brackets. Every bad item is reported.
pub(crate) fn list<T>(
    value: &Value,
    mut read: impl FnMut(&Value) -> Result<T, Problems>,
) -> Result<Vec<T>, Problems> {
    let items = match &value.literal {
        Literal::List(items) => items.as_slice(),
        _ => std::slice::from_ref(value),
    };
    let (mut good, mut bad) = (Vec::new(), Problems::default());
    for item in items {
        match read(item) {
            Ok(item) => good.push(item),
            Err(problems) => bad.extend(problems),
        }
    }
    if bad.is_empty() { Ok(good) } else { Err(bad) }
}

/// As [`list`], refusing an empty one.
pub(crate) fn some<T>(
    value: &Value,
    read: impl FnMut(&Value) -> Result<T, Problems>,
) -> Result<Vec<T>, Problems> {
    not_empty(value)?;
    list(value, read)
}

/// As [`some`], refusing an item that stands in it twice.
pub(crate) fn distinct<T: PartialEq>(
    value: &Value,
    read: impl FnMut(&Value) -> Result<T, Problems>,
) -> Result<Vec<T>, Problems> {
    not_empty(value)?;
    distinct_or_none(value, read)
}

/// As [`distinct`], but the list may be empty.
pub(crate) fn distinct_or_none<T: PartialEq>(
    value: &Value,
    mut read: impl FnMut(&Value) -> Result<T, Problems>,
) -> Result<Vec<T>, Problems> {
    let mut seen: Vec<Located<T>> = Vec::new();
    list(value, |item| {
        let found = read(item)?;
        if let Some(first) = seen.iter().find(|first| first.value == found) {
            return Err(twice(item, &first.origin));
        }
        seen.push(Located { value: found, origin: item.origin.clone() });
        Ok(())
    })?;
    Ok(seen.into_iter().map(|item| item.value).collect())
}

fn not_empty(value: &Value) -> Result<(), Problems> {
    match &value.literal {
        Literal::List(items) if items.is_empty() => {
            let help = "leave the setting out to get its default";
            Err(Problem::at(&value.origin, "the list is empty", None).help(help).into())
        }
        _ => Ok(()),
    }
}

/// `read`, keeping where the value was written.
pub(crate) fn located<T>(
    value: &Value,
    read: impl FnOnce(&Value) -> Result<T, Problems>,
) -> Result<Located<T>, Problems> {
    Ok(Located { value: read(value)?, origin: value.origin.clone() })
}

fn twice(item: &Value, first: &SourceSpan) -> Problems {
    let message = format!("`{}` stands in the list twice", item.written().trim_matches(['"', '\'']));
    Problem::at(&item.origin, message, None).related(first, "first here").into()
}

pub(crate) fn wrong_kind(value: &Value, expected: &str) -> Problems {
    let found = match &value.literal {
        Literal::Table(_) => "a table".to_owned(),
        Literal::List(_) => "a list".to_owned(),
        _ => format!("`{}`", value.written()),
    };
    Problem::at(&value.origin, format!("expected {expected}, found {found}"), None).into()
}

fn unreadable(value: &Value, error: Unreadable) -> Problems {
    Problem::at(&value.origin, error.message, Some(error.help)).into()
}
