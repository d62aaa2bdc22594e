//! Whether values of a suite's file are ones that exist: told while it is read, with their line and column, and not
//! after an hour by a target that refuses them.

use std::fmt::Display;

use serde::de::{Deserialize, Deserializer, Error};

use super::field::{OneOrMany, size};
use crate::selector;
use crate::target::KeyKind;

const VERSIONS: [&str; 5] = ["1.0", "1.1", "1.2", "1.3", "clear"];
const GROUPS: [&str; 4] = ["X25519", "P-256", "P-384", "X25519MLKEM768"];
const PROTOCOLS: [&str; 3] = ["h2", "http/1.1", "none"];
const BACKENDS: [&str; 3] = ["plain", "tls", "balanced"];
const CROWDS: [&str; 5] = ["handshakes", "passing", "hellos", "slow hellos", "network"];
const ENGINES: [&str; 3] = ["lean", "real", "openssl"];

type Read<T, E> = Result<Option<OneOrMany<T>>, E>;

pub(super) fn version<'de, D: Deserializer<'de>>(from: D) -> Read<String, D::Error> {
    checked(from, |value: &String| one_of("version", &VERSIONS, value))
}

pub(super) fn key<'de, D: Deserializer<'de>>(from: D) -> Read<String, D::Error> {
    let one = |key: &str| key.trim().parse::<KeyKind>().map(drop);
    checked(from, |value: &String| value.split('+').try_for_each(one))
}

pub(super) fn exchange<'de, D: Deserializer<'de>>(from: D) -> Read<String, D::Error> {
    checked(from, |value: &String| one_of("exchange", &GROUPS, value))
}

pub(super) fn alpn<'de, D: Deserializer<'de>>(from: D) -> Read<String, D::Error> {
    checked(from, |value: &String| one_of("application protocol", &PROTOCOLS, value))
}

pub(super) fn resumption<'de, D: Deserializer<'de>>(from: D) -> Read<String, D::Error> {
    checked(from, |value: &String| one_of("resumption", &["ticket", "id"], value))
}

pub(super) fn object<'de, D: Deserializer<'de>>(from: D) -> Read<String, D::Error> {
    checked(from, |value: &String| size(value).map(drop))
}

pub(super) fn backend<'de, D: Deserializer<'de>>(from: D) -> Read<String, D::Error> {
    checked(from, |value: &String| one_of("backend", &BACKENDS, value))
}

pub(super) fn beside<'de, D: Deserializer<'de>>(from: D) -> Read<String, D::Error> {
    checked(from, |value: &String| one_of("crowd", &CROWDS, value))
}

pub(super) fn engine<'de, D: Deserializer<'de>>(from: D) -> Read<String, D::Error> {
    checked(from, |value: &String| one_of("engine", &ENGINES, value))
}

/// Of what there has to be at least one.
pub(super) fn some<'de, D, T>(from: D) -> Read<T, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de> + Clone + Default + Display + PartialOrd,
{
    checked(from, |value: &T| above_zero(value))
}

/// A time in seconds that is one.
pub(super) fn seconds<'de, D: Deserializer<'de>>(from: D) -> Result<f64, D::Error> {
    let value = f64::deserialize(from)?;
    if value.is_finite() { above_zero(&value) } else { Err(format!("{value} is no time")) }
        .map_err(D::Error::custom)?;
    Ok(value)
}

/// Names of targets, that there are.
pub(super) fn targets<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<String>, D::Error> {
    let names = Vec::<String>::deserialize(from)?;
    names.iter().try_for_each(|name| selector::check(name)).map_err(D::Error::custom)?;
    Ok(names)
}

/// Those of a group, instead of the suite's.
pub(super) fn other_targets<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Vec<String>>, D::Error> {
    targets(from).map(Some)
}

fn checked<'de, D, T>(from: D, check: impl Fn(&T) -> Result<(), String>) -> Read<T, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de> + Clone,
{
    let read = OneOrMany::deserialize(from)?;
    read.values().iter().try_for_each(check).map_err(D::Error::custom)?;
    Ok(Some(read))
}

fn one_of(what: &str, known: &[&str], value: &str) -> Result<(), String> {
    if known.contains(&value) {
        return Ok(());
    }
    Err(format!("{value:?} is no {what}: write one of {}", known.join(", ")))
}

fn above_zero<T: Default + Display + PartialOrd>(value: &T) -> Result<(), String> {
    if *value > T::default() { Ok(()) } else { Err(format!("{value} is not enough: a number above 0 is")) }
}
