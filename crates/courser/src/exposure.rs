//! Who can read or change a file besides the account that courser runs as, which decides whether it can hold a secret.

use std::fmt;
use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use courser_net::account::Account;

/// Root's user ID: it can read and change everything in any case.
const ROOT: u32 = 0;

/// Why a file cannot hold a secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exposure {
    /// Everybody can read it.
    OthersRead(Access),
    /// Everybody can change it.
    OthersWrite(Access),
    /// A group can read it that is not lent the file.
    GroupReads(Access),
    GroupWrites(Access),
    /// It belongs to another user, who can change it and its permissions.
    Foreign(Access),
}

/// Whose a file is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Access {
    mode: u32,
    owner: u32,
    group: u32,
}

impl Exposure {
    /// Judges a file that `reader` is going to read.
    pub(crate) fn of(found: &Metadata, reader: &Account) -> Option<Self> {
        Self::of_access(
            Access { mode: found.mode() & 0o7777, owner: found.uid(), group: found.gid() },
            reader,
        )
    }

    fn of_access(access: Access, reader: &Account) -> Option<Self> {
        let Access { mode, owner, group } = access;
        // Root lends a file to a group of ours, as container platforms and Debian's group ssl-cert do: then we can read it
        // in no other way.
        let is_lent = owner == ROOT && reader.uid != ROOT && reader.is_in(group);
        if owner != ROOT && owner != reader.uid {
            Some(Self::Foreign(access))
        } else if mode & 0o002 != 0 {
            Some(Self::OthersWrite(access))
        } else if mode & 0o004 != 0 {
            Some(Self::OthersRead(access))
        } else if mode & 0o020 != 0 {
            Some(Self::GroupWrites(access))
        } else if mode & 0o040 != 0 && !is_lent {
            Some(Self::GroupReads(access))
        } else {
            None
        }
    }

    /// What to type.
    pub(crate) fn help(self, path: &Path, reader: &Account) -> String {
        let (path, uid) = (path.display(), reader.uid);
        let keep = "; if others have read it, make a new one";
        match self {
            Self::Foreign(_) => format!("chown {uid} {path} && chmod 600 {path}{keep}"),
            Self::OthersRead(access) | Self::OthersWrite(access) | Self::GroupWrites(access)
                if access.owner == ROOT && uid != ROOT && reader.is_in(access.group) =>
            {
                format!("chmod 640 {path}{keep}")
            }
            _ => format!("chmod 600 {path}{keep}"),
        }
    }
}

impl fmt::Display for Exposure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OthersRead(Access { mode, .. }) => write!(f, "others can read it (mode {mode:04o})"),
            Self::OthersWrite(Access { mode, .. }) => write!(f, "others can change it (mode {mode:04o})"),
            Self::GroupReads(Access { mode, group, .. }) => {
                write!(f, "the group that it belongs to, {group}, can read it (mode {mode:04o})")
            }
            Self::GroupWrites(Access { mode, group, .. }) => {
                write!(f, "the group that it belongs to, {group}, can change it (mode {mode:04o})")
            }
            Self::Foreign(Access { owner, .. }) => {
                write!(f, "it belongs to user {owner}, who can change it, and not to courser's user or root")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OURS: u32 = 1000;
    const STRANGER: u32 = 2000;

    fn judged(mode: u32, owner: u32, group: u32, reader: &Account) -> &'static str {
        match Exposure::of_access(Access { mode, owner, group }, reader) {
            None => "fine",
            Some(Exposure::OthersRead(_)) => "others read",
            Some(Exposure::OthersWrite(_)) => "others write",
            Some(Exposure::GroupReads(_)) => "group reads",
            Some(Exposure::GroupWrites(_)) => "group writes",
            Some(Exposure::Foreign(_)) => "foreign",
        }
    }

    #[test]
    fn every_way_to_a_secret_is_judged() {
        let service = Account { uid: OURS, gid: OURS, groups: vec![44] };
        let root = Account { uid: ROOT, gid: ROOT, groups: vec![] };
        for (mode, owner, group, to_service, to_root) in [
            (0o600, OURS, OURS, "fine", "foreign"),
            (0o400, ROOT, ROOT, "fine", "fine"),
            (0o700, OURS, OURS, "fine", "foreign"),
            (0o644, ROOT, ROOT, "others read", "others read"),
            (0o602, ROOT, ROOT, "others write", "others write"),
            (0o666, OURS, OURS, "others write", "foreign"),
            // Its own group may have other members; root, who could, has not lent it.
            (0o640, OURS, OURS, "group reads", "foreign"),
            (0o640, ROOT, STRANGER, "group reads", "group reads"),
            (0o640, ROOT, ROOT, "group reads", "group reads"),
            // Lent to our group, or to one of ours (Kubernetes' fsGroup, ssl-cert).
            (0o640, ROOT, OURS, "fine", "group reads"),
            (0o440, ROOT, 44, "fine", "group reads"),
            (0o660, ROOT, OURS, "group writes", "group writes"),
            (0o620, OURS, OURS, "group writes", "foreign"),
            (0o600, STRANGER, STRANGER, "foreign", "foreign"),
            (0o640, STRANGER, OURS, "foreign", "foreign"),
        ] {
            assert_eq!(judged(mode, owner, group, &service), to_service, "{mode:o} {owner}:{group}");
            assert_eq!(judged(mode, owner, group, &root), to_root, "{mode:o} {owner}:{group} to root");
        }
    }

    #[test]
    fn the_help_can_be_typed() {
        let service = Account { uid: OURS, gid: OURS, groups: vec![] };
        let help = |mode, owner, group| {
            let found = Exposure::of_access(Access { mode, owner, group }, &service).unwrap();
            found.help(Path::new("/etc/key"), &service)
        };
        assert!(help(0o644, OURS, OURS).starts_with("chmod 600 /etc/key;"));
        assert!(help(0o644, ROOT, OURS).starts_with("chmod 640 /etc/key;"));
        assert!(help(0o600, STRANGER, OURS).starts_with("chown 1000 /etc/key && chmod 600 /etc/key;"));
    }
}
