//! What is installed of a target: asked of the program itself.

use std::env;
use std::fs;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};

use super::definition::{Ask, Definition, Program};

/// Folders of programs that an ordinary user's `PATH` does not have.
const SYSTEM: [&str; 4] = ["/usr/local/sbin", "/usr/sbin", "/sbin", "/usr/local/bin"];
/// Folders of programs that a user has built, under the home folder.
const BUILT: [&str; 2] = [".cargo/bin", "go/bin"];

/// The variable by which the dynamic linker finds libraries before the system's.
pub(super) const LIBRARIES: &str = "LD_LIBRARY_PATH";

/// How long a program may take to say its version.
const PATIENCE: Duration = Duration::from_secs(5);

/// What is installed of a target.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Installed {
    /// The program; empty for a target that is none.
    pub program: PathBuf,
    /// Its version, as it says.
    pub version: String,
    /// Its TLS library, as it says; none when it does not.
    pub library: Option<String>,
    /// Which of the files that it needs is there; empty when it needs none.
    pub needed: String,
}

impl Definition {
    /// Looks for its program, and asks it for its version. Of a chain, that of the first program.
    ///
    /// # Errors
    /// How to install it, when it is not there.
    pub fn installed(&self) -> Result<Installed, String> {
        let mut found =
            self.parts().map(|part| part.program.as_ref().map_or_else(|| Ok(Installed::default()), ask_all));
        let first = found.next().unwrap_or_else(|| Ok(Installed::default()))?;
        found.try_for_each(|other| other.map(drop))?;
        Ok(first)
    }
}

fn ask_all(program: &Program) -> Result<Installed, String> {
    let path = find(program).ok_or_else(|| program.install.clone())?;
    let ask = |what: &Ask| ask(&path, what, program.libraries.as_deref());
    let needed = program.needs.iter().find(|file| Path::new(file).exists());
    if needed.is_none() && !program.needs.is_empty() {
        return Err(program.install.clone());
    }
    Ok(Installed {
        version: ask(&program.version).unwrap_or_else(|| "unknown".into()),
        library: program.library.as_ref().and_then(ask),
        needed: needed.cloned().unwrap_or_default(),
        program: path,
    })
}

/// The first of its names in the first folder that has one.
fn find(program: &Program) -> Option<PathBuf> {
    let beside = || Some(env::current_exe().ok()?.parent()?.to_owned());
    let beside = program.beside.then(beside).flatten();
    let folders: Vec<PathBuf> = beside.into_iter().chain(folders()).collect();
    let candidates =
        program.names.iter().flat_map(|name| folders.iter().map(move |folder| folder.join(name)));
    candidates.into_iter().find(|path| path.is_file())
}

fn folders() -> Vec<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    let home = env::home_dir().unwrap_or_default();
    let built = BUILT.iter().map(|folder| home.join(folder));
    env::split_paths(&path).chain(SYSTEM.iter().map(PathBuf::from)).chain(built).collect()
}

fn ask(path: &Path, ask: &Ask, libraries: Option<&str>) -> Option<String> {
    if let Some(fixed) = &ask.fixed {
        return Some(fixed.clone());
    }
    if let Some(name) = &ask.linked {
        return linked(path, name, libraries);
    }
    let arguments: Vec<&str> = ask.arguments.iter().map(String::as_str).collect();
    answer(&printed(path, &arguments, libraries)?, ask)
}

/// What follows the first of `after` that is there; the first line without any.
fn answer(printed: &str, ask: &Ask) -> Option<String> {
    let after = || ask.after.iter().find_map(|mark| Some(printed.split_once(mark.as_str())?.1));
    let rest = if ask.after.is_empty() { printed.trim_start() } else { after()? };
    let line = rest.lines().next().unwrap_or_default();
    let end = ask.until.as_deref().and_then(|until| line.find(until)).unwrap_or(line.len());
    Some(format!("{}{}", ask.prefix, line[..end].trim()))
}

/// Both outputs of a program that should end by itself; one that does not is ended.
fn printed(program: &Path, arguments: &[&str], libraries: Option<&str>) -> Option<String> {
    let mut command = Command::new(program);
    command.envs(libraries.map(|folder| (LIBRARIES, folder)));
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = command.process_group(0).spawn().ok()?;
    let group = i32::try_from(child.id()).ok().and_then(Pid::from_raw)?;
    let (over, waits) = channel::<()>();
    let guard = thread::spawn(move || {
        if waits.recv_timeout(PATIENCE) == Err(RecvTimeoutError::Timeout) {
            // It may have ended this very moment.
            let _ = kill_process_group(group, Signal::KILL);
        }
    });
    let output = child.wait_with_output();
    drop(over);
    // It has no way to fail.
    let _ = guard.join();
    let output = output.ok()?;
    Some(String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned())
}

/// The version that a shared library of the program has in its text: `OpenSSL 3.0.19 27 Jan 2026`.
fn linked(program: &Path, name: &str, libraries: Option<&str>) -> Option<String> {
    let list = printed(Path::new("ldd"), &[program.to_str()?], libraries)?;
    let line = list.lines().find(|line| line.trim_start().starts_with(name))?;
    let library = fs::read(line.split_whitespace().nth(2)?).ok()?;
    let mark = b"OpenSSL ";
    let begins = |window: &[u8]| window.starts_with(mark) && window[mark.len()].is_ascii_digit();
    let at = library.windows(mark.len() + 1).position(begins)?;
    let text = library[at..].split(|byte| !(b' '..=b'~').contains(byte)).next()?;
    Some(String::from_utf8_lossy(text).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_does_not_end_is_ended_with_all_that_it_started() {
        let said = printed(Path::new("/bin/sh"), &["-c", "echo 1.0; sleep 1000"], None);
        assert_eq!(said.as_deref(), Some("1.0\n"));
    }

    #[test]
    fn the_library_that_runs_goes_before_the_one_that_was_built_with() {
        let marks = |after: &[&str]| Ask {
            after: after.iter().map(|&mark| mark.into()).collect(),
            until: Some(")".into()),
            ..Ask::default()
        };
        let both = "nginx version: nginx/1.22.1\nbuilt with OpenSSL 3.0.22 25 Aug (running with OpenSSL 3.0.19 27 Jan)\n";
        let one = "built with OpenSSL 3.0.22 25 Aug\n";
        let library = marks(&["running with ", "built with "]);
        assert_eq!(answer(both, &library).as_deref(), Some("OpenSSL 3.0.19 27 Jan"));
        assert_eq!(answer(one, &library).as_deref(), Some("OpenSSL 3.0.22 25 Aug"));
        assert_eq!(answer("no TLS here", &library), None);
        assert_eq!(
            answer("2.6.2 h1:x", &Ask { until: Some(" ".into()), ..Ask::default() }).as_deref(),
            Some("2.6.2")
        );
    }

    #[test]
    fn what_is_missing_is_told_with_how_to_install_it() {
        let text = "name='a'\ntitle='A'\nnote='n'\n[program]\nnames=['no-such-program-at-all']\n\
                    install='apt-get install a'\nversion={arguments=['-v']}\n";
        let definition: Definition = toml::from_str(text).unwrap();
        assert_eq!(definition.installed(), Err("apt-get install a".to_owned()));
    }
}
