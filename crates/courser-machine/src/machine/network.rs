//! Network cards: which driver, which processors take their interrupts and unpack their packets.

use super::files::Files;

const CARDS: &str = "sys/class/net";

/// Drivers of the cards, as "eth0 virtio_net"; of an interface without a card, such as a container's end of a pair,
/// that it has none. `None` where nothing but the loopback is seen.
pub(super) fn drivers(files: &Files) -> Option<String> {
    let driver = |name: &String| {
        let driver = files.link(&format!("{CARDS}/{name}/device/driver"));
        format!("{name} {}", driver.as_deref().unwrap_or("without a card"))
    };
    joined(interfaces(files).iter().map(driver))
}

/// Who may take the interrupts of each card, and whether each interrupt is on one processor: "each on one processor
/// (eth0 0 1)" or "not pinned (eth0 0-3 0-3)". `None` where no interrupt of a card is seen, as in most containers.
pub(super) fn interrupts(files: &Files) -> Option<String> {
    let cards = interfaces(files).into_iter().filter_map(|name| {
        let lists: Vec<String> =
            numbers(files, &name).into_iter().filter_map(|number| affinity(files, &number)).collect();
        (!lists.is_empty()).then_some((name, lists))
    });
    let cards: Vec<(String, Vec<String>)> = cards.collect();
    let pinned = cards.iter().flat_map(|(_, lists)| lists).all(|list| list.parse::<u32>().is_ok());
    let shown = joined(cards.iter().map(|(name, lists)| format!("{name} {}", lists.join(" "))))?;
    Some(format!("{} ({shown})", if pinned { "each on one processor" } else { "not pinned" }))
}

/// Whether the kernel spreads received packets over processors by itself (RPS): "off", or the masks of the queues.
pub(super) fn spreading(files: &Files) -> Option<String> {
    let masks: Vec<String> = interfaces(files).iter().flat_map(|name| queues(files, name)).collect();
    let on: Vec<String> = masks.iter().filter(|mask| is_on(mask)).cloned().collect();
    (!masks.is_empty()).then(|| if on.is_empty() { "off".to_owned() } else { on.join(", ") })
}

/// All but the loopback.
fn interfaces(files: &Files) -> Vec<String> {
    files.names(CARDS).into_iter().filter(|name| name != "lo").collect()
}

/// Interrupts of a card: in its own folder, or for virtio in that of the PCI device it sits on.
fn numbers(files: &Files, name: &str) -> Vec<String> {
    let of = |folder: &str| files.names(&format!("{CARDS}/{name}/{folder}/msi_irqs"));
    let own = of("device");
    if own.is_empty() { of("device/..") } else { own }
}

fn affinity(files: &Files, number: &str) -> Option<String> {
    files.line(&format!("proc/irq/{number}/smp_affinity_list"))
}

fn queues(files: &Files, name: &str) -> Vec<String> {
    let folder = format!("{CARDS}/{name}/queues");
    let mask = |queue: &String| {
        Some(format!("{name} {queue} {}", files.line(&format!("{folder}/{queue}/rps_cpus"))?))
    };
    files.names(&folder).iter().filter_map(mask).collect()
}

/// Whether the mask at the end has a bit: hexadecimal digits in groups.
fn is_on(queue: &str) -> bool {
    let mask = queue.rsplit(' ').next().unwrap_or_default();
    mask.chars().any(|digit| digit != '0' && digit != ',')
}

fn joined(parts: impl Iterator<Item = String>) -> Option<String> {
    let parts: Vec<String> = parts.collect();
    (!parts.is_empty()).then(|| parts.join(", "))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use courser_testkit::Folder;

    use super::*;

    /// A machine with one virtio card of two queues, whose interrupts may go to these processors.
    fn machine(affinities: [&str; 2]) -> Folder {
        let root = Folder::new();
        let file = |path: &str, text: &str| {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        let link = |from: &str, to: &str| symlink(root.path().join(to), root.path().join(from)).unwrap();
        file("sys/class/net/lo/queues/rx-0/rps_cpus", "f\n");
        file("sys/class/net/eth0/queues/rx-0/rps_cpus", "00000000,00000000\n");
        file("sys/class/net/eth0/queues/tx-0/xps_cpus", "1\n");
        file("sys/class/net/br0/queues/rx-0/rps_cpus", "0\n");
        file("sys/devices/pci/virtio2/features", "");
        file("sys/devices/pci/msi_irqs/37", "msix\n");
        file("sys/devices/pci/msi_irqs/38", "msix\n");
        file("sys/drivers/virtio_net/uevent", "");
        link("sys/class/net/eth0/device", "sys/devices/pci/virtio2");
        link("sys/devices/pci/virtio2/driver", "sys/drivers/virtio_net");
        file("proc/irq/37/smp_affinity_list", affinities[0]);
        file("proc/irq/38/smp_affinity_list", affinities[1]);
        root
    }

    #[test]
    fn a_card_is_named_with_its_driver() {
        let root = machine(["0", "1"]);
        assert_eq!(drivers(&Files::new(root.path())).unwrap(), "br0 without a card, eth0 virtio_net");
    }

    #[test]
    fn interrupts_are_pinned_where_each_has_one_processor() {
        let affinity = |affinities| interrupts(&Files::new(machine(affinities).path())).unwrap();
        assert_eq!(affinity(["0\n", "1\n"]), "each on one processor (eth0 0 1)");
        assert_eq!(affinity(["0-3\n", "1\n"]), "not pinned (eth0 0-3 1)");
    }

    #[test]
    fn packets_are_spread_where_a_mask_has_a_bit() {
        let root = machine(["0", "0"]);
        assert_eq!(spreading(&Files::new(root.path())).unwrap(), "off");
        fs::write(root.path().join("sys/class/net/eth0/queues/rx-0/rps_cpus"), "00000000,0000000c\n")
            .unwrap();
        assert_eq!(spreading(&Files::new(root.path())).unwrap(), "eth0 rx-0 00000000,0000000c");
    }

    #[test]
    fn a_container_without_cards_says_nothing_of_them() {
        let root = Folder::new();
        let files = Files::new(root.path());
        assert_eq!((drivers(&files), interrupts(&files), spreading(&files)), (None, None, None));
    }
}
