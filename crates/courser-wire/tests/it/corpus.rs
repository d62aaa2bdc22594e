//! The inputs that fuzzing found worth keeping, run through what the fuzz targets run: `cargo test` alone says
//! whether one of them breaks again.

use std::fs;
use std::path::Path;

use crate::exercise;

#[test]
fn the_client_hello_corpus_holds() {
    run("client_hello", exercise::client_hello);
}

#[test]
fn the_proxy_v1_corpus_holds() {
    run("proxy_v1", exercise::proxy_v1);
}

#[test]
fn the_proxy_v2_corpus_holds() {
    run("proxy_v2", exercise::proxy_v2);
}

#[test]
fn the_server_hello_corpus_holds() {
    run("server_hello", exercise::server_hello);
}

fn run(target: &str, exercise: fn(&[u8])) {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(target);
    let mut files = 0;
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        println!("{}", path.display());
        exercise(&fs::read(path).unwrap());
        files += 1;
    }
    assert!(files > 5, "{target} has {files} inputs");
}
