//! Counts one case under callgrind.

use std::{fs, io};

use courser_testkit::{Courser, Folder, Leaf, OriginServer, TestCa, client::Client, load::Workload};

use crate::case::Case;

/// A file whose code runs on no thread but the worker's.
const ONLY_WORKER: &str = "courser-proxy/src/handshake.rs";

/// Instructions of the worker's thread for each of `counted` connections behind `warm` others.
pub(crate) fn per_connection(program: &str, case: Case, warm: u32, counted: u32) -> io::Result<f64> {
    let fewer = count(program, case, warm)?;
    let more = count(program, case, warm + counted)?;
    Ok((more - fewer) as f64 / f64::from(counted))
}

fn count(program: &str, case: Case, connections: u32) -> io::Result<i64> {
    let (folder, origin) = (Folder::new(), OriginServer::http());
    let certificate = TestCa::new().issue(&Leaf::new(case.terms().key)).write_combined(&folder, "site");
    let counts = folder.join("callgrind");
    fs::create_dir_all(&counts)?;
    let out = format!("--callgrind-out-file={}/out", counts.display());
    let mut courser = Courser::setup(program)
        .cert(certificate)
        .backend(origin.address().to_string())
        .args(["--workers", "1", "--log", "off"])
        .args(case.flags())
        .under(&["valgrind", "--quiet", "--tool=callgrind", "--separate-threads=yes", &out])
        .start();
    let client = Client::offering(courser.address(), case.terms());
    for _ in 0..connections {
        let mut connection = client.connect()?;
        match case.exchange() {
            Workload::Handshake => connection.close()?,
            workload => connection.exchange(workload)?,
        }
    }
    courser.stop();
    let totals = fs::read_dir(&counts)?.map(|file| worker(&fs::read_to_string(file?.path())?));
    let totals = totals.collect::<io::Result<Vec<_>>>()?;
    totals.into_iter().flatten().next().ok_or(io::Error::other("callgrind has not seen the worker's thread"))
}

/// The total at the end of callgrind's file of a thread, if that is the worker's.
fn worker(text: &str) -> io::Result<Option<i64>> {
    let is_worker = text.contains(ONLY_WORKER);
    let total = text.lines().find_map(|line| line.strip_prefix("totals: ")).filter(|_| is_worker);
    total.map(|total| total.trim().parse().map_err(io::Error::other)).transpose()
}
