use super::*;

/// Under full TLS 1.3 handshakes with RSA-2048, 199 samples a second, a part of what perf printed.
const NGINX: &str = include_str!("../../tests/perf/nginx.txt");
const HAPROXY: &str = include_str!("../../tests/perf/haproxy.txt");
const COURSER: &str = include_str!("../../tests/perf/courser.txt");

fn shares(profile: &lab::Profile) -> BTreeMap<&str, f64> {
    let share = |count: u64| count as f64 / profile.samples as f64;
    profile.classes.iter().map(|(class, count)| (&**class, share(*count))).collect()
}

#[test]
fn handshakes_of_real_servers_are_explained() {
    for (name, text, root) in [("nginx", NGINX, 100), ("haproxy", HAPROXY, 200), ("courser", COURSER, 300)] {
        let profile = profile(text, root, 199).unwrap();
        let shares = shares(&profile);
        let share = |class| shares.get(class).copied().unwrap_or_default();
        assert!(share("other") < 0.05, "{name}: {shares:?}");
        assert!(
            shares["crypto"] > 0.4 && shares["kernel"] > 0.03 && shares["tls"] > 0.0,
            "{name}: {shares:?}"
        );
        assert_eq!(profile.classes.values().sum::<u64>(), profile.samples, "{name}");
        assert!(
            profile.folded.lines().any(|line| line.contains("libcrypto") || line.contains("aws_lc")),
            "{name}"
        );
    }
}

#[test]
fn whoever_is_not_of_the_family_is_left_out() {
    let alone = profile(NGINX, 101, 199).unwrap().samples;
    assert!(alone < profile(NGINX, 100, 199).unwrap().samples, "workers are children of the master");
    let why = profile(NGINX, 4711, 199).unwrap_err();
    assert!(why.ends_with("is of process 4711: was it idle?"), "{why}");
}

/// Where perf may look, it sees a process of ours at work; where it may not, it says why.
#[test]
fn a_process_is_sampled_and_nothing_is_left() {
    if let Err(why) = available() {
        assert!(!why.is_empty());
        eprintln!("skipped: {why}");
        return;
    }
    let folder = courser_testkit::Folder::new();
    let mut busy = Command::new("sh").args(["-c", "while :; do :; done"]).spawn().unwrap();
    let sampling = Sampling::start(busy.id(), 99, folder.path()).unwrap();
    let perf = sampling.perf.id();
    let began = usage::cpu_time(busy.id()).unwrap();
    while usage::cpu_time(busy.id()).unwrap() < began + std::time::Duration::from_secs(1) {
        std::thread::yield_now();
    }
    let profile = sampling.finish();
    busy.kill().unwrap();
    busy.wait().unwrap();
    let profile = profile.unwrap();
    assert!(profile.samples > 0 && profile.hertz == 99, "{profile:?}");
    assert!(!folder.path().join("perf.data").exists());
    assert!(!Path::new(&format!("/proc/{perf}")).exists());
}
