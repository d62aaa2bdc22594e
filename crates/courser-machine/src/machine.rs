//! The machine that a measurement runs on: what about it can change a result. Facts only, read from `/proc` and
//! `/sys`; what cannot be read is left out.

mod files;
mod network;
mod ports;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use courser_net::cpu::Cpus;
use courser_record::Machine;
use rustix::process::{Resource, getrlimit};
use rustix::time::{ClockId, clock_getres};

use files::Files;
pub use ports::{Ports, Reuse};

/// Settings that decide how many connections there can be, how fast, and how they are queued.
const SYSCTLS: [&str; 26] = [
    "fs.file-max",
    "fs.nr_open",
    "net.core.netdev_budget",
    "net.core.netdev_max_backlog",
    "net.core.rmem_max",
    "net.core.somaxconn",
    "net.core.wmem_max",
    "net.ipv4.conf.all.rp_filter",
    "net.ipv4.conf.default.rp_filter",
    "net.ipv4.ip_local_port_range",
    "net.ipv4.ip_local_reserved_ports",
    "net.ipv4.tcp_congestion_control",
    "net.ipv4.tcp_ecn",
    "net.ipv4.tcp_fastopen",
    "net.ipv4.tcp_fin_timeout",
    "net.ipv4.tcp_max_orphans",
    "net.ipv4.tcp_max_syn_backlog",
    "net.ipv4.tcp_max_tw_buckets",
    "net.ipv4.tcp_sack",
    "net.ipv4.tcp_slow_start_after_idle",
    "net.ipv4.tcp_syncookies",
    "net.ipv4.tcp_timestamps",
    "net.ipv4.tcp_tw_reuse",
    "net.ipv4.tcp_tw_reuse_delay",
    "net.ipv4.tcp_window_scaling",
    "net.netfilter.nf_conntrack_max",
];

/// Instructions that cryptography is fast with (x86 and ARM names in `/proc/cpuinfo`).
const FEATURES: [&str; 12] = [
    "adx",
    "aes",
    "avx2",
    "avx512ifma",
    "bmi2",
    "pclmulqdq",
    "pmull",
    "sha2",
    "sha512",
    "sha_ni",
    "vaes",
    "vpclmulqdq",
];

/// Reads this machine's facts; versions of libraries are the caller's to add.
pub fn read() -> Machine {
    let cpus = Cpus::available();
    let mut machine = read_under(Path::new("/"));
    machine.cores = u32::try_from(cpus.order.len()).unwrap_or(u32::MAX);
    machine.open_files = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    machine.facts.extend(ticks().map(|hertz| ("ticks of the scheduler, Hz".to_owned(), hertz)));
    machine.facts.extend(cpus.quota.map(|quota| ("processor quota".to_owned(), format!("{quota:.2}"))));
    machine
}

/// What `proc` and `sys` in the folder `root` tell.
fn read_under(root: &Path) -> Machine {
    let files = Files::new(root);
    let cpu = files.table("proc/cpuinfo");
    let sysctl = |name: &&str| Some(((*name).to_owned(), files.sysctl(name)?));
    let kernel = |name: &str| files.sysctl(name).unwrap_or_default();
    Machine {
        name: kernel("kernel.hostname"),
        cpu_model: cpu.get("model name").cloned().unwrap_or_default(),
        kernel: format!("{} {}", kernel("kernel.ostype"), kernel("kernel.osrelease")).trim().to_owned(),
        memory_bytes: memory(&files).unwrap_or(0),
        virtualisation: virtualisation(&files, &cpu),
        sysctls: SYSCTLS.iter().filter_map(sysctl).collect(),
        facts: facts(&files, &cpu)
            .into_iter()
            .filter_map(|(name, fact)| Some((name.to_owned(), fact?)))
            .collect(),
        ..Machine::default()
    }
}

fn memory(files: &Files) -> Option<u64> {
    let total = files.table("proc/meminfo").remove("MemTotal")?;
    Some(total.strip_suffix(" kB")?.parse::<u64>().ok()? * 1024)
}

fn virtualisation(files: &Files, cpu: &BTreeMap<String, String>) -> Option<String> {
    // Only x86 has a flag for it.
    let guest = cpu.get("flags")?.split(' ').any(|flag| flag == "hypervisor");
    let name = || files.line("sys/hypervisor/type").or_else(|| files.line("sys/class/dmi/id/product_name"));
    Some(if guest { name().unwrap_or_else(|| "unnamed hypervisor".to_owned()) } else { "none".to_owned() })
}

fn facts(files: &Files, cpu: &BTreeMap<String, String>) -> [(&'static str, Option<String>); 17] {
    const CPU: &str = "sys/devices/system/cpu";
    let of_cpu = |file: &str| files.line(&format!("{CPU}/{file}"));
    [
        ("processors online", of_cpu("online")),
        ("processors isolated", of_cpu("isolated").filter(|list| !list.is_empty())),
        ("physical cores of a socket", cpu.get("cpu cores").cloned()),
        ("simultaneous multithreading", of_cpu("smt/control")),
        ("processors that share a core", siblings(files)),
        ("frequency, MHz", cpu.get("cpu MHz").cloned()),
        ("frequency governor", of_cpu("cpu0/cpufreq/scaling_governor")),
        ("frequency driver", of_cpu("cpu0/cpufreq/scaling_driver")),
        ("idle driver", of_cpu("cpuidle/current_driver")),
        ("cryptographic instructions", features(cpu)),
        ("transparent huge pages", files.chosen("sys/kernel/mm/transparent_hugepage/enabled")),
        ("clock source", files.line("sys/devices/system/clocksource/clocksource0/current_clocksource")),
        ("connection tracking", conntrack(files)),
        ("container", container(files)),
        ("network drivers", network::drivers(files)),
        ("interrupts of network cards", network::interrupts(files)),
        ("receive packet steering", network::spreading(files)),
    ]
}

fn features(cpu: &BTreeMap<String, String>) -> Option<String> {
    let flags = cpu.get("flags").or_else(|| cpu.get("Features"))?;
    let flags: Vec<&str> = flags.split(' ').collect();
    let known: Vec<&str> = FEATURES.into_iter().filter(|feature| flags.contains(feature)).collect();
    Some(known.join(" "))
}

/// Whether each connection is tracked, which costs time and has a limit of its own.
fn conntrack(files: &Files) -> Option<String> {
    files.sysctl("net.core.somaxconn")?; // else nothing can be told from absence
    let count = files.sysctl("net.netfilter.nf_conntrack_count");
    Some(count.map_or_else(|| "not loaded".to_owned(), |count| format!("loaded, {count} connections")))
}

/// Which logical processors are threads of one core: each core's, as "0,2 1,3"; "none" where each has its own.
fn siblings(files: &Files) -> Option<String> {
    const CPU: &str = "sys/devices/system/cpu";
    let list = |name: &String| files.line(&format!("{CPU}/{name}/topology/thread_siblings_list"));
    let lists: BTreeSet<String> = files.names(CPU).iter().filter_map(list).collect();
    let shared: Vec<String> = lists.iter().filter(|list| list.contains([',', '-'])).cloned().collect();
    (!lists.is_empty()).then(|| if shared.is_empty() { "none".to_owned() } else { shared.join(" ") })
}

/// Whether this is a container, by the marks that the usual ones leave. Its own network has its own settings there, and
/// those of the whole machine (cards, interrupts, some of net.core) may be hidden.
fn container(files: &Files) -> Option<String> {
    let marks = [(".dockerenv", "docker"), ("run/.containerenv", "podman"), ("dev/lxd", "lxd")];
    let found = marks.into_iter().find(|(mark, _)| files.exists(mark));
    found.map(|(mark, name)| format!("{name} (by /{mark})"))
}

/// How often the kernel's clock ticks, and the scheduler with it: the step of the coarse clock is one tick, also where
/// the kernel's build settings are not to be read.
fn ticks() -> Option<String> {
    let tick = clock_getres(ClockId::MonotonicCoarse);
    // A kernel that only imitates Linux may give the step of its fine clock.
    (tick.tv_sec == 0 && (500_000..=10_000_000).contains(&tick.tv_nsec))
        .then(|| (1_000_000_000 / tick.tv_nsec).to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_machine_is_known() {
        let machine = read();
        assert!(machine.kernel.starts_with("Linux "), "{}", machine.kernel);
        assert!(machine.cores > 0 && machine.open_files > 0 && machine.memory_bytes > 1 << 20, "{machine:?}");
        assert!(machine.sysctls.contains_key("net.ipv4.ip_local_port_range"), "{machine:?}");
        assert!(machine.facts.contains_key("processors online"), "{machine:?}");
    }

    #[test]
    fn what_is_not_there_is_left_out() {
        let nowhere = read_under(Path::new("/nonexistent"));
        assert_eq!((nowhere.cpu_model.as_str(), &nowhere.virtualisation), ("", &None));
        assert!(nowhere.sysctls.is_empty() && nowhere.facts.is_empty(), "{nowhere:?}");
    }

    #[test]
    fn processors_that_share_a_core_are_told_once() {
        let lists_of = |lists: &[&str]| {
            let root = courser_testkit::Folder::new();
            for (cpu, list) in lists.iter().enumerate() {
                let folder = root.path().join(format!("sys/devices/system/cpu/cpu{cpu}/topology"));
                std::fs::create_dir_all(&folder).unwrap();
                std::fs::write(folder.join("thread_siblings_list"), list).unwrap();
            }
            siblings(&Files::new(root.path()))
        };
        assert_eq!(lists_of(&["0,2\n", "1,3\n", "0,2\n", "1,3\n"]).unwrap(), "0,2 1,3");
        assert_eq!(lists_of(&["0\n", "1\n"]).unwrap(), "none");
        assert_eq!(lists_of(&[]), None);
    }

    #[test]
    fn the_kernel_ticks_a_usual_number_of_times() {
        let hertz = ticks().unwrap();
        assert!(["100", "250", "300", "1000"].contains(&hertz.as_str()), "{hertz}");
    }

    #[test]
    fn a_guest_is_told_from_bare_metal() {
        let files = Files::new(Path::new("/nonexistent"));
        let with =
            |flags: &str| virtualisation(&files, &BTreeMap::from([("flags".to_owned(), flags.to_owned())]));
        assert_eq!(with("fpu vme aes").unwrap(), "none");
        assert_eq!(with("fpu hypervisor aes").unwrap(), "unnamed hypervisor");
        assert_eq!(virtualisation(&files, &BTreeMap::new()), None);
    }

    #[test]
    fn instructions_that_matter() {
        let cpu = BTreeMap::from([("flags".to_owned(), "fpu sha_ni aes avx512ifma mmx".to_owned())]);
        assert_eq!(features(&cpu).unwrap(), "aes avx512ifma sha_ni");
        let arm = BTreeMap::from([("Features".to_owned(), "fp asimd aes pmull sha2".to_owned())]);
        assert_eq!(features(&arm).unwrap(), "aes pmull sha2");
    }
}
