//! A copy of this system that is gone afterwards: a writable layer over it, in a mount namespace of its own. For what only
//! root may do to a system, such as installing a package.

use std::path::Path;
use std::process::Command;

use crate::process::{self, Finished};
use crate::{Folder, leave_out};

/// Runs a shell script in a copy of the system, where `folder` is at `/mnt`. `None`, with the reason printed, where the
/// system forbids it.
pub fn run(folder: &Path, script: &str) -> Option<Finished> {
    let possible = in_overlay(folder, "true");
    if !possible.status.success() {
        leave_out(format!("a copy of the system takes root and overlays: {}", possible.stderr.trim()));
        return None;
    }
    Some(in_overlay(folder, script))
}

fn in_overlay(folder: &Path, script: &str) -> Finished {
    let work = Folder::new();
    let mut command = Command::new("unshare");
    command.args(["--mount", "sh", "-c", IN_OVERLAY]).env("WORK", work.path());
    process::run(command.env("FOLDER", folder).env("SCRIPT", script))
}

const IN_OVERLAY: &str = "\
set -e
mount -t tmpfs tmpfs \"$WORK\"
mkdir \"$WORK/upper\" \"$WORK/work\" \"$WORK/root\"
mount -t overlay overlay -o lowerdir=/,upperdir=\"$WORK/upper\",workdir=\"$WORK/work\" \"$WORK/root\"
mount --bind /dev \"$WORK/root/dev\"
mount --bind /proc \"$WORK/root/proc\"
mount --bind \"$FOLDER\" \"$WORK/root/mnt\"
exec chroot \"$WORK/root\" sh -ec \"$SCRIPT\"
";
