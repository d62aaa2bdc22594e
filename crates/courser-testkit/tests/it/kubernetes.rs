//! The manifests of `packaging/kubernetes`, held to the schemas of Kubernetes.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use courser_testkit::{Finished, Folder, process, require};

/// The oldest version that the manifests are for: `preStop` sleeps without a shell in the image.
const VERSION: &str = "1.30";

#[test]
fn the_manifests_are_what_kubernetes_takes() {
    let Some(validator) = require("kubernetes-validate") else { return };
    let validate = |files: &[PathBuf]| -> Finished {
        process::run(Command::new(&validator).args(["--strict", "-k", VERSION]).args(files))
    };
    let folder = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../packaging/kubernetes"));
    let files: Vec<PathBuf> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    let done = validate(&files);
    assert!(done.status.success() && files.len() == 2, "{}{}", done.stdout, done.stderr);

    let misspelt = fs::read_to_string(folder.join("courser.yaml")).unwrap().replace("preStop:", "preStopp:");
    let scratch = Folder::new();
    let refused = validate(&[scratch.write("misspelt.yaml", misspelt)]);
    assert!(!refused.status.success(), "the validator takes anything: {}{}", refused.stdout, refused.stderr);
}
