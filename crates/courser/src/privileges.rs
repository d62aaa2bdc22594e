//! The user that the process switches to when its sockets are open: its account, the files that it must reach, and the
//! switch.

use std::io;
use std::path::{Path, PathBuf};

use courser_config::{Config, ListenAddress, Located, Problem, Problems, Process, SourceSpan};
use courser_net::account::{self, Account};
use courser_net::limits;
use courser_telemetry::event::{Level, log};
use rustix::fs::Access;

use crate::exit::Failure;

/// The account that `user` and `group` name; `None` where the process already has it.
pub(crate) fn successor(process: &Process) -> Result<Option<Account>, Failure> {
    let Some(user) = &process.user else {
        let Some(group) = &process.group else { return Ok(None) };
        return Err(wrong(
            &group.origin,
            "a group without a user",
            "name the user as well: `user` (`--user`)",
        ));
    };
    let (uid, own_group) = find_user(user)?;
    let named = process.group.as_ref().map(find_group).transpose()?;
    let Some(gid) = named.or(own_group) else {
        let message = format!("user {uid} is unknown to the system and has no group");
        return Err(wrong(&user.origin, message, "name one: `group` (`--group`)"));
    };
    // Supplementary groups are dropped: the settings do not show what they give access to.
    let account = Account { uid, gid, groups: Vec::new() };
    let current = Account::current();
    if (current.uid, current.gid) == (uid, gid) {
        return Ok(None);
    }
    if current.uid != 0 {
        let message = format!("user {} cannot become user {uid}, group {gid}", current.uid);
        return Err(wrong(
            &user.origin,
            message,
            "start courser as root, or as that user and without `user`",
        ));
    }
    Ok(Some(account))
}

fn find_user(user: &Located<String>) -> Result<(u32, Option<u32>), Failure> {
    let failed = |error| Failure::runtime(format_args!("cannot look user {} up", user.value), error);
    if let Ok(uid) = user.value.parse() {
        return Ok((uid, account::group_of(uid).map_err(failed)?));
    }
    let found = account::find_user(&user.value).map_err(failed)?;
    let (uid, gid) = found.ok_or_else(|| unknown("user", user, "passwd"))?;
    Ok((uid, Some(gid)))
}

fn find_group(group: &Located<String>) -> Result<u32, Failure> {
    if let Ok(gid) = group.value.parse() {
        return Ok(gid);
    }
    let failed = |error| Failure::runtime(format_args!("cannot look group {} up", group.value), error);
    account::find_group(&group.value).map_err(failed)?.ok_or_else(|| unknown("group", group, "group"))
}

fn unknown(what: &str, name: &Located<String>, database: &str) -> Failure {
    let help = format!("a number, or a name that `getent {database}` shows");
    wrong(&name.origin, format!("there is no {what} `{}`", name.value), help)
}

fn wrong(place: &SourceSpan, message: impl Into<String>, help: impl Into<String>) -> Failure {
    Problem::at(place, message, Some(help.into())).into()
}

/// What `account` cannot reach and will have to: files that are read again later, folders that are written to. The kernel
/// judges, by a thread that is that user for as long.
pub(crate) fn unreachable(config: &Config, account: &Account) -> Result<Problems, Failure> {
    let needs = needs(config);
    let judged = as_account(account, || {
        let obstacles = needs.iter().map(|need| need.obstacle(account));
        obstacles.flatten().collect::<Vec<_>>()
    })?;
    let mut problems = Problems::default();
    problems.extend(judged);
    Ok(problems)
}

/// Does something as `account`, on a thread of its own; it may start no other thread.
pub(crate) fn as_account<T: Send>(account: &Account, work: impl FnOnce() -> T + Send) -> Result<T, Failure> {
    account
        .lend(work)
        .map_err(|error| Failure::runtime(format_args!("cannot become user {}", account.uid), error))
}

/// A file that has to be readable, or a folder that has to be writable.
struct Need<'a> {
    place: &'a SourceSpan,
    path: PathBuf,
    access: Access,
}

fn needs(config: &Config) -> Vec<Need<'_>> {
    let read = |place, path: &Path| Need { place, path: absolute(path), access: Access::READ_OK };
    let write =
        |place, path: &Path| Need { place, path: absolute(path), access: Access::WRITE_OK | Access::EXEC_OK };
    let (sessions, fleet) = (&config.sessions, &config.fleet);
    let certificates = config.hosts().flat_map(|host| &host.certificates).chain(&sessions.store_cert);
    let files = certificates.flat_map(|files| [(&files.origin, &*files.chain), (&files.origin, &*files.key)]);
    let single = [&sessions.store_password, &sessions.store_ca, &config.acme.eab, &config.acme.directory_ca];
    let single = single
        .into_iter()
        .flatten()
        .chain(&fleet.keys)
        .chain(config.hosts().flat_map(|host| host.client_ca.iter().chain(&host.staples)));
    let files = files.chain(single.map(|file| (&file.origin, file.value.as_path())));
    let process = &config.process;
    let beside =
        [&sessions.file, &process.control, &process.log_file, &process.events_file].into_iter().flatten();
    let beside = beside.map(|file| (&file.origin, file.value.parent().unwrap_or(Path::new("/"))));
    let folders = fleet
        .state
        .iter()
        .chain(&config.process.state_folder)
        .map(|folder| (&folder.origin, folder.value.as_path()))
        .chain(beside);
    let mut needs: Vec<_> = files.map(|(place, path)| read(place, path)).collect();
    needs.extend(folders.map(|(place, path)| write(place, path)));
    needs.sort_by(|one, other| one.path.cmp(&other.path));
    needs.dedup_by(|one, other| one.path == other.path && one.access == other.access);
    needs
}

fn absolute(path: &Path) -> PathBuf {
    let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}

impl Need<'_> {
    /// Why the calling thread's user, `account`, cannot reach it; missing files are reported elsewhere.
    fn obstacle(&self, account: &Account) -> Option<Problem> {
        let Account { uid, gid, .. } = account;
        let folders: Vec<_> = self.path.ancestors().skip(1).collect();
        if let Some(folder) = folders.into_iter().rev().find(|folder| is_denied(folder, Access::EXEC_OK)) {
            let (shown, path) = (folder.display(), self.path.display());
            let message = format!("user {uid} cannot get to {path}: it may not enter {shown}");
            return Some(Problem::at(self.place, message, Some(format!("chmod o+x {shown}"))));
        }
        if !is_denied(&self.path, self.access) {
            return None;
        }
        let path = self.path.display();
        let (message, help) = if self.access == Access::READ_OK {
            let help = format!("chown root:{gid} {path} && chmod 640 {path}");
            (format!("user {uid} cannot read {path}, which is read again later"), help)
        } else {
            let help = format!("chown {uid} {path} && chmod 700 {path}, if no other program uses it");
            (format!("user {uid} cannot write to {path}"), help)
        };
        Some(Problem::at(self.place, message, Some(help)))
    }
}

fn is_denied(path: &Path, access: Access) -> bool {
    let denied = [rustix::io::Errno::ACCESS, rustix::io::Errno::PERM, rustix::io::Errno::ROFS];
    rustix::fs::access(path, access).is_err_and(|error| denied.contains(&error))
}

/// Switches all threads for good, as the last step before connections are accepted. Sockets with a path get the new user as
/// their owner, who removes the control socket at the end.
pub(crate) fn give_up(
    config: &Config,
    successor: Option<&Account>,
    control: Option<&Path>,
) -> Result<(), Failure> {
    let Some(account) = successor else {
        if config.process.user.is_none() && Account::current().uid == 0 {
            log(Level::Warning, "running as root: name another user with `user` (`--user`)");
        }
        return Ok(());
    };
    let listening = config
        .listeners
        .iter()
        .flat_map(|listener| &listener.listen)
        .filter_map(|address| if let ListenAddress::Unix(path) = address { Some(path) } else { None });
    for path in listening.map(PathBuf::as_path).chain(control) {
        account.take_socket(path).map_err(|error| {
            Failure::runtime(format_args!("cannot change the owner of {}", path.display()), error)
        })?;
    }
    let refused =
        |error: io::Error| Failure::runtime(format_args!("cannot become user {}", account.uid), error);
    account.become_for_good().map_err(refused)?;
    if config.process.core_dumps {
        // The kernel takes that back from a process that changes its user.
        limits::allow_core_dumps().map_err(refused)?;
    }
    log(Level::Info, format_args!("running as user {}, group {}", account.uid, account.gid));
    Ok(())
}
