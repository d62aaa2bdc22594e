//! Fields of a header: type, length and value.

use crate::bytes::Reader;
use crate::proxy::Malformed;

/// The next type and value, `None` at the end.
pub(super) fn next_field<'a>(reader: &mut Reader<'a>) -> Result<Option<(u8, &'a [u8])>, Malformed> {
    let Some(kind) = reader.u8() else { return Ok(None) };
    let value = reader.vector16().ok_or(Malformed::ShortField(kind))?;
    Ok(Some((kind, value)))
}

/// Fills `slot`, unless something is in it.
pub(super) fn once<T>(kind: u8, slot: &mut Option<T>, value: T) -> Result<(), Malformed> {
    if slot.replace(value).is_some() { Err(Malformed::Repeated(kind)) } else { Ok(()) }
}

pub(super) fn text(kind: u8, value: &[u8]) -> Result<&str, Malformed> {
    str::from_utf8(value).map_err(|_| Malformed::NotText(kind))
}

/// Appends one field, if there is a value, which has been checked to fit.
pub(super) fn field(kind: u8, value: Option<&[u8]>, out: &mut Vec<u8>) {
    if let Some(value) = value {
        field_with(kind, out, |out| out.extend_from_slice(value));
    }
}

pub(super) fn field_with(kind: u8, out: &mut Vec<u8>, content: impl FnOnce(&mut Vec<u8>)) {
    out.extend_from_slice(&[kind, 0, 0]);
    let start = out.len();
    content(out);
    let length = u16::try_from(out.len() - start).expect("it was measured before it was written");
    out[start - 2..start].copy_from_slice(&length.to_be_bytes());
}
