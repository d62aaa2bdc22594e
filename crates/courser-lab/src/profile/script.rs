//! What `perf script` prints, read. It is a program's text for people: whatever is not understood is passed
//! over, and nothing in it can do harm.

use std::collections::{HashMap, HashSet};

/// More frames than perf unwinds (kernel.perf_event_max_stack); what is further out is cut.
const DEEPEST: usize = 127;

/// Samples, and who was born of whom.
#[derive(Debug, Default)]
pub(super) struct Script {
    pub(super) samples: Vec<Sample>,
    /// Process to parent: of those that were there before, too.
    parents: HashMap<u32, u32>,
}

/// A moment of a process.
#[derive(Debug)]
pub(super) struct Sample {
    pid: u32,
    stack: Vec<Frame>,
}

/// A function that was running, or waited for the one before it in the stack.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Frame {
    /// Its name; that of the object, in brackets, when it has none there.
    pub(super) symbol: String,
    /// The file that it is in, without the folder; `[kernel]` for the kernel.
    pub(super) object: String,
}

/// What the kernel is called as an object.
pub(super) const KERNEL: &str = "[kernel]";

impl Script {
    pub(super) fn parse(text: &str) -> Self {
        let mut script = Self::default();
        let mut is_open = false;
        for line in text.lines() {
            if let Some((child, parent)) = birth(line) {
                script.parents.insert(child, parent);
            } else if line.starts_with('\t') {
                if let (true, Some(sample), Some(frame)) = (is_open, script.samples.last_mut(), frame(line)) {
                    sample.push(frame);
                }
            } else {
                let sample = pid(line).map(|pid| Sample { pid, stack: Vec::new() });
                is_open = sample.is_some();
                script.samples.extend(sample);
            }
        }
        script
    }

    /// The stacks of a process and all that descend from it, each with the innermost frame first.
    pub(super) fn of_family(&self, root: u32) -> impl Iterator<Item = &[Frame]> {
        let family: HashSet<u32> =
            self.samples.iter().map(|sample| sample.pid).filter(|&pid| self.descends(pid, root)).collect();
        self.samples.iter().filter(move |sample| family.contains(&sample.pid)).map(|sample| &sample.stack[..])
    }

    fn descends(&self, mut pid: u32, root: u32) -> bool {
        // Numbers are used again, so that the lines can make a ring.
        for _ in 0..=self.parents.len() {
            if pid == root {
                return true;
            }
            let Some(&parent) = self.parents.get(&pid) else { return false };
            pid = parent;
        }
        false
    }
}

impl Sample {
    fn push(&mut self, frame: Frame) {
        if self.stack.len() < DEEPEST {
            self.stack.push(frame);
        }
    }
}

/// `COMM PID PERF_RECORD_FORK(PID:TID):(PARENT:TID)`; a new thread is no birth.
fn birth(line: &str) -> Option<(u32, u32)> {
    let (_, numbers) = line.split_once("PERF_RECORD_FORK(")?;
    let (child, parent) = numbers.split_once("):(")?;
    let process = |numbers: &str| numbers.split_once(':')?.0.parse::<u32>().ok();
    Some((process(child)?, process(parent)?)).filter(|(child, parent)| child != parent)
}

/// `COMM PID`, where the name may have blanks.
fn pid(line: &str) -> Option<u32> {
    if line.contains("PERF_RECORD_") { None } else { line.split_ascii_whitespace().last()?.parse().ok() }
}

/// `ADDRESS SYMBOL (OBJECT)`. What is in no known object is where unwinding went astray, unless it is the
/// kernel's.
fn frame(line: &str) -> Option<Frame> {
    let (address, rest) = line.trim().split_once(' ')?;
    let rest = rest.strip_suffix(')')?;
    let at = [" (/", " (["].iter().filter_map(|open| rest.rfind(open)).max().or_else(|| rest.rfind(" ("))?;
    let (symbol, object) = (rest[..at].trim(), &rest[at + 2..]);
    let object = object.strip_suffix(" (deleted)").unwrap_or(object);
    let object = match object {
        _ if object.starts_with("[kernel") || is_kernel(address) => KERNEL,
        "[unknown]" => return None,
        path => path.rsplit('/').next().unwrap_or(path),
    };
    let symbol = match symbol {
        "[unknown]" | "" => format!("[{}]", object.trim_matches(['[', ']'])),
        known => known.to_owned(),
    };
    Some(Frame { symbol, object: object.to_owned() })
}

/// The upper half of addresses; all ones mark the end of a stack that could not be unwound.
fn is_kernel(address: &str) -> bool {
    address.len() == 16 && address.starts_with("ffff") && address.bytes().any(|digit| digit != b'f')
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn names_may_have_blanks_and_parentheses() {
        let line = "\t  18f2ee <a::Key as b::Sign>::sign(u8, (u8)) (/usr/local/bin/my server (deleted))";
        let frame = frame(line).unwrap();
        assert_eq!((&*frame.symbol, &*frame.object), ("<a::Key as b::Sign>::sign(u8, (u8))", "my server"));
        assert_eq!(pid("tokio worker 1 4711 "), Some(4711));
    }

    #[test]
    fn frames_astray_are_left_out_and_the_kernel_is_known_by_its_addresses() {
        assert_eq!(frame("\tffffffffffffffff [unknown] ([unknown])"), None);
        assert_eq!(frame("\t    7f653c7f20d0 [unknown] ([unknown])"), None);
        let hidden = frame("\tffffffff8140b1f5 [unknown] ([unknown])").unwrap();
        assert_eq!((&*hidden.symbol, &*hidden.object), ("[kernel]", KERNEL));
        let nameless = frame("\t 129999 [unknown] (/usr/lib/x86_64-linux-gnu/libcrypto.so.3)").unwrap();
        assert_eq!((&*nameless.symbol, &*nameless.object), ("[libcrypto.so.3]", "libcrypto.so.3"));
    }

    #[test]
    fn a_family_is_a_process_and_all_that_descend_from_it() {
        let text = "init 1 PERF_RECORD_FORK(10:10):(1:1)\nx 10 PERF_RECORD_FORK(11:11):(10:10)\n\
                    x 11 PERF_RECORD_FORK(11:12):(11:11)\n\
                    x 10 \n\t1 a (/x)\n\nx 11 \n\t1 b (/x)\n\ny 20 \n\t1 c (/y)\n\n";
        let script = Script::parse(text);
        let names: Vec<_> = script.of_family(10).map(|stack| &*stack[0].symbol).collect();
        assert_eq!(names, ["a", "b"]);
        assert_eq!(script.of_family(11).count(), 1);
        assert_eq!(script.of_family(1).count(), 2);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn any_text_can_be_read(text in any::<Vec<u8>>(), root in any::<u32>()) {
            let script = Script::parse(&String::from_utf8_lossy(&text));
            prop_assert!(script.of_family(root).count() <= script.samples.len());
        }

        #[test]
        fn so_can_text_that_is_nearly_right(
            lines in prop::collection::vec(
                prop_oneof![
                    "[a-z ]{0,4}[0-9]{0,3} ?",
                    "\t[0-9a-f]{0,17} [a-zé\\[\\]() :;/]{0,20}\\)?",
                    "x [0-9] PERF_RECORD_FORK\\([0-9]:[0-9]\\):\\([0-9]:[0-9]\\)",
                    Just(String::new()),
                ],
                0..40,
            ),
            root in 0..10_u32,
        ) {
            let script = Script::parse(&lines.join("\n"));
            prop_assert!(script.of_family(root).count() <= script.samples.len());
        }
    }
}
