//! OpenSSL, timed by its own program: `openssl speed`, whose lines for machines (`-mr`) are read here. It
//! counts processor time in user mode, as we do of ourselves.

use std::io;
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, Stdio};

use courser_record::lab::Figure;

use super::Timed;
use super::algorithms::{KeyExchangeCost, SIZES, Signature, Throughput};

/// Runs of `openssl speed`.
pub(super) struct Speed {
    seconds: String,
    /// Why no further run is tried: the program is missing, or was interrupted.
    over: Option<String>,
}

/// What the program says of itself; empty where there is none.
pub(super) fn version() -> String {
    let output = Command::new("openssl").arg("version").output();
    let said = output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned()).unwrap_or_default();
    said.lines().next().unwrap_or_default().trim().to_owned()
}

impl Speed {
    /// `seconds` for each figure: the program takes whole ones.
    pub(super) fn new(seconds: u32) -> Self {
        Self { seconds: seconds.to_string(), over: None }
    }

    /// A figure for each size: 1000s of bytes a second.
    pub(super) fn throughput(&mut self, algorithm: &Throughput) -> Result<Vec<Figure>, String> {
        // What is retired is in a provider of its own.
        let mut arguments = vec!["-provider", "legacy", "-provider", "default", "-evp", algorithm.theirs];
        arguments.extend(algorithm.is_aead.then_some("-aead"));
        let mut figures = Vec::new();
        for size in SIZES {
            let size = size.to_string();
            let said = self.run(&[&arguments[..], &["-bytes", &size]].concat())?;
            let rate = throughput(&said).ok_or_else(|| said.why())?;
            figures.push(Figure {
                name: size,
                unit: "1000 bytes/s".to_owned(),
                value: rate / 1e3,
                low: None,
                high: None,
            });
        }
        Ok(figures)
    }

    /// Signing and verifying.
    pub(super) fn signature(&mut self, algorithm: &Signature) -> Result<Vec<Timed>, String> {
        let said = self.run(&[algorithm.theirs])?;
        let (signed, verified) = signatures(&said).ok_or_else(|| said.why())?;
        let timed = |name, per_second: f64| Timed { name, us: 1e6 / per_second, interval: None };
        Ok(vec![timed("sign", signed), timed("verify", verified)])
    }

    /// Secrets a second.
    pub(super) fn exchange(&mut self, algorithm: &KeyExchangeCost) -> Result<Vec<Figure>, String> {
        let said = self.run(&[algorithm.theirs])?;
        let per_second = secrets(&said).ok_or_else(|| said.why())?;
        Ok(vec![Timed { name: "agree", us: 1e6 / per_second, interval: None }.per_second()])
    }

    fn run(&mut self, arguments: &[&str]) -> Result<Said, String> {
        if let Some(why) = &self.over {
            return Err(why.clone());
        }
        let mut command = Command::new("openssl");
        command.args(["speed", "-mr", "-seconds", &self.seconds]).args(arguments).stdin(Stdio::null());
        match command.output() {
            Err(error) => Err(self.end(match error.kind() {
                io::ErrorKind::NotFound => "openssl is not installed".to_owned(),
                _ => format!("openssl cannot be started: {error}"),
            })),
            Ok(output) if output.status.signal().is_some() => Err(self.end("it was interrupted".to_owned())),
            Ok(output) => Ok(Said {
                figures: String::from_utf8_lossy(&output.stdout).into_owned(),
                errors: String::from_utf8_lossy(&output.stderr).into_owned(),
            }),
        }
    }

    fn end(&mut self, why: String) -> String {
        self.over.insert(why).clone()
    }
}

/// What a run printed.
struct Said {
    figures: String,
    errors: String,
}

impl Said {
    /// The numbers of a line that begins so, without the first `skip` fields.
    fn numbers(&self, start: &str, skip: usize) -> Option<Vec<f64>> {
        let line = self.figures.lines().find_map(|line| line.strip_prefix(start))?;
        line.split(':').skip(skip).map(|field| field.parse().ok().filter(|number| *number > 0.0)).collect()
    }

    /// Why there is no figure: the first that is no progress.
    fn why(&self) -> String {
        let is_progress = |line: &&str| line.starts_with('+') || line.trim().is_empty();
        let reason = self.errors.lines().find(|line| !is_progress(line)).map(str::trim);
        let reason = reason.unwrap_or("it printed no figure").trim_start_matches("speed: ");
        format!("openssl speed: {reason}")
    }
}

/// `+F:NUMBER:NAME:BYTES_PER_SECOND`.
fn throughput(said: &Said) -> Option<f64> {
    said.numbers("+F:", 2)?.first().copied()
}

/// `+F2` (RSA), `+F4` (ECDSA): `NUMBER:BITS:SIGNED:VERIFIED`; `+F6` (EdDSA) has a name after the bits.
fn signatures(said: &Said) -> Option<(f64, f64)> {
    let numbers = ["+F2:", "+F4:"].into_iter().find_map(|start| said.numbers(start, 2));
    match numbers.or_else(|| said.numbers("+F6:", 3))?[..] {
        [signed, verified] => Some((signed, verified)),
        _ => None,
    }
}

/// `+F5:NUMBER:BITS:SECRETS:SECONDS`.
fn secrets(said: &Said) -> Option<f64> {
    said.numbers("+F5:", 2)?.first().copied()
}

#[cfg(test)]
mod tests {
    use super::super::algorithms::SIGNATURES;
    use super::*;

    fn said(figures: &str, errors: &str) -> Said {
        Said { figures: figures.into(), errors: errors.into() }
    }

    #[test]
    fn lines_of_openssl_3() {
        let cipher =
            said("+H:64\n+F:25:AES-128-GCM:96039488.00\n", "+DT:AES-128-GCM:1:64\n+R:1:AES-128-GCM:1.0\n");
        assert_eq!(throughput(&cipher), Some(96_039_488.0));
        assert_eq!(signatures(&said("+F2:2:2048:2176.000000:37653.000000\n", "")), Some((2176.0, 37_653.0)));
        assert_eq!(signatures(&said("+F4:3:256:30275.0:10176.0\n", "")), Some((30_275.0, 10_176.0)));
        assert_eq!(signatures(&said("+F6:0:253:Ed25519:20746.0:8420.0\n", "")), Some((20_746.0, 8420.0)));
        assert_eq!(secrets(&said("+F5:22:253:20670.000000:0.000048\n", "")), Some(20_670.0));
    }

    #[test]
    fn what_is_not_there_has_a_reason() {
        let unknown =
            said("", "speed: mdc2 is an unknown cipher or digest\n80DB:error:0308010C:digital envelope\n");
        assert_eq!(throughput(&unknown), None);
        assert_eq!(unknown.why(), "openssl speed: mdc2 is an unknown cipher or digest");
        let nothing = said("+H:16:64\n+F:0:md2:0.00:0.00\n", "+DT:md2:1:16\nmd2 error!\n");
        assert_eq!((throughput(&nothing), nothing.why()), (None, "openssl speed: md2 error!".to_owned()));
        assert_eq!(said("", "").why(), "openssl speed: it printed no figure");
    }

    #[test]
    fn the_program_of_this_machine_is_understood() {
        let mut speed = Speed::new(1);
        match speed.signature(&SIGNATURES[2]) {
            Ok(timed) => assert!(timed[0].us > timed[1].us && timed[1].us > 0.0, "{timed:?}"),
            Err(why) => {
                assert_eq!(why, "openssl is not installed");
                eprintln!("skipped: {why}");
            }
        }
    }
}
