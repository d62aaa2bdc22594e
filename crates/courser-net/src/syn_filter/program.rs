//! The programs, instruction by instruction (Linux, Documentation/networking/filter.rst). At a listening socket the packet
//! begins with its TCP header.

use std::net::IpAddr;

use super::known::{BITS, FOLD, MIX, WORD_SHIFT, network_words};
use super::{KnownSources, MAX_NETWORKS, Network, SynShares};

/// One instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Instruction {
    pub(super) code: u16,
    /// Instructions to skip.
    pub(super) if_true: u8,
    pub(super) if_false: u8,
    pub(super) operand: u32,
}

pub(super) fn drop_all() -> Vec<Instruction> {
    let mut program = pass_all_but_syns();
    program.push(give(DROP));
    program
}

pub(super) fn drop_shares(shares: &SynShares<'_>) -> Vec<Instruction> {
    let mut program = pass_all_but_syns();
    let networks = &shares.networks[..shares.networks.len().min(MAX_NETWORKS)];
    let of = |is_v4: bool| {
        let family = networks.iter().filter(move |(network, _)| network.address().is_ipv4() == is_v4);
        family.flat_map(|&(network, share)| one_network(network, share, shares.salt)).collect::<Vec<_>>()
    };
    let (mut v4, mut v6) = (of(true), of(false));
    v4.splice(0..0, [load(WORD, NETWORK_HEADER + V4_SOURCE), store(KEY)]);
    v6.splice(0..0, v6_key());
    program.extend([load(BYTE, NETWORK_HEADER), with(SHIFT_RIGHT, 4)]);
    // A long way: the branches of both are jumped over as a whole.
    v4.push(jump(v6.len()));
    program.push(if_equal(4, 1, 0));
    program.push(jump(v4.len()));
    program.extend(v4);
    program.extend(v6);
    if let Some((known, share)) = shares.known {
        program.extend(one_of(known, &by_share(share, shares.salt)));
    }
    program.extend(by_share(shares.others, shares.salt));
    program
}

/// A pure SYN has SYN and no ACK. Accepted sockets inherit the program: they leave it after three instructions.
fn pass_all_but_syns() -> Vec<Instruction> {
    vec![load(BYTE, FLAGS), with(AND, SYN | ACK), if_equal(SYN, 1, 0), give(PASS)]
}

/// [`key`](super::known::key) of an IPv6 source.
fn v6_key() -> Vec<Instruction> {
    let mut code = vec![load(WORD, NETWORK_HEADER + V6_SOURCE), with(MULTIPLY, FOLD)];
    code.extend(xor_shifted(15));
    code.extend([to_x(), load(WORD, NETWORK_HEADER + V6_SOURCE + 4), with_x(ADD), store(KEY)]);
    code
}

/// Decides about a SYN of this network; goes on behind it for others.
fn one_network(network: Network, share: f64, salt: u32) -> Vec<Instruction> {
    let (first, words) = match network.address() {
        IpAddr::V4(address) => (V4_SOURCE, vec![address.to_bits()]),
        IpAddr::V6(address) => (V6_SOURCE, network_words(address).to_vec()),
    };
    let decide = by_share(share, salt);
    let words = &words[..usize::from(network.bits()).div_ceil(32)];
    let mut code = Vec::new();
    let mut bits = u32::from(network.bits());
    for ((offset, word), left) in (first..).step_by(4).zip(words).zip((0..words.len()).rev()) {
        let mask = u32::MAX << (32 - bits.min(32));
        let rest = left * TEST_LENGTH + decide.len();
        code.extend([load(WORD, NETWORK_HEADER + offset), with(AND, mask)]);
        code.push(if_equal(*word, 0, u8::try_from(rest).expect("a test and a decision are short")));
        bits = bits.saturating_sub(32);
    }
    code.extend(decide);
    code
}

/// Instructions of the test of one word.
const TEST_LENGTH: usize = 3;

/// Drops the share of pairs of key and port, and passes the others.
fn by_share(share: f64, salt: u32) -> Vec<Instruction> {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it is from 0 to 2^32")]
    let threshold = (share.clamp(0.0, 1.0) * 4_294_967_296.0) as u64;
    let threshold = match u32::try_from(threshold) {
        Ok(0) => return vec![give(PASS)],
        Ok(threshold) => threshold,
        Err(_) => return vec![give(DROP)],
    };
    let mut code = vec![load(HALF, SOURCE_PORT), with(MULTIPLY, FOLD), to_x()];
    code.extend([recall(KEY), with(XOR, salt), with_x(ADD)]);
    code.extend(mix());
    code.extend([if_at_least(threshold, 0, 1), give(PASS), give(DROP)]);
    code
}

/// Does `then` for a source that is known; goes on behind it for others.
fn one_of(known: &KnownSources, then: &[Instruction]) -> Vec<Instruction> {
    let mut code = vec![recall(KEY), with(XOR, known.salt())];
    code.extend(mix());
    code.push(store(HASH));
    code.extend(mask());
    code.extend([recall(HASH), with(SHIFT_RIGHT, WORD_SHIFT)]);
    let look_up = look_up(&known.words(), 0);
    let compare = [with_x(AND), if_equal_x(0, u8::try_from(then.len()).expect("a decision is short"))];
    let stranger = look_up.len() + compare.len() + then.len();
    let found = look_up.len();
    for (at, step) in look_up.into_iter().enumerate() {
        code.push(match step {
            Step::Instruction(instruction) => instruction,
            Step::Found => jump(found - at - 1),
            Step::Stranger => jump(stranger - at - 1),
        });
    }
    code.extend(compare);
    code.extend(then);
    code
}

/// The bits of the hash's source, in X.
fn mask() -> Vec<Instruction> {
    let mut code = vec![with(LOAD_VALUE, 0), store(MASK)];
    for bit in 0..BITS {
        code.extend([recall(HASH), with(SHIFT_RIGHT, 5 * bit), with(AND, 31), to_x()]);
        code.extend([with(LOAD_VALUE, 1), with_x(SHIFT_LEFT), recall_x(MASK), with_x(OR), store(MASK)]);
    }
    code.push(recall_x(MASK));
    code
}

/// A part of the look-up of a word.
enum Step {
    Instruction(Instruction),
    /// The word is in A.
    Found,
    /// The word is zero.
    Stranger,
}

/// Loads the word whose number is in A: a program has no tables, so its words are the leaves of a tree of jumps.
fn look_up(words: &[u32], first: usize) -> Vec<Step> {
    if words.iter().all(|&word| word == 0) {
        return vec![Step::Stranger];
    }
    if let [word] = *words {
        return vec![Step::Instruction(with(LOAD_VALUE, word)), Step::Found];
    }
    let middle = words.len() / 2;
    let (low, high) = words.split_at(middle);
    let (low, high) = (look_up(low, first), look_up(high, first + middle));
    let first_high = u32::try_from(first + middle).expect("there are WORDS of them");
    let mut code = match u8::try_from(low.len()) {
        Ok(length) => vec![Step::Instruction(if_at_least(first_high, length, 0))],
        Err(_) => [if_at_least(first_high, 0, 1), jump(low.len())].map(Step::Instruction).into(),
    };
    code.extend(low);
    code.extend(high);
    code
}

/// [`mix`](super::known) of A.
fn mix() -> Vec<Instruction> {
    let mut code = Vec::new();
    for (shift, factor) in MIX {
        code.extend(xor_shifted(shift));
        code.push(with(MULTIPLY, factor));
    }
    code.extend(xor_shifted(16));
    code
}

/// `A ^= A >> shift`. X is lost.
fn xor_shifted(shift: u32) -> [Instruction; 3] {
    [to_x(), with(SHIFT_RIGHT, shift), with_x(XOR)]
}

/// Bytes of the TCP header (RFC 9293, section 3.1).
const SOURCE_PORT: u32 = 0;
const FLAGS: u32 = 13;
const SYN: u32 = 0x02;
const ACK: u32 = 0x10;

/// SKF_NET_OFF: from here on offsets are of the IP header, which begins with the version.
const NETWORK_HEADER: u32 = (-0x10_0000_i32).cast_unsigned();
const V4_SOURCE: u32 = 12;
const V6_SOURCE: u32 = 8;

/// Cells of the program's memory.
const KEY: u32 = 0;
const HASH: u32 = 1;
const MASK: u32 = 2;

/// Bytes of the packet to keep: all or none.
const PASS: u32 = u32::MAX;
const DROP: u32 = 0;

/// Operations (linux/bpf_common.h).
const BYTE: u16 = 0x10;
const HALF: u16 = 0x08;
const WORD: u16 = 0x00;
const LOAD_VALUE: u16 = 0x00;
const ADD: u16 = 0x04;
const MULTIPLY: u16 = 0x24;
const OR: u16 = 0x44;
const AND: u16 = 0x54;
const SHIFT_LEFT: u16 = 0x64;
const SHIFT_RIGHT: u16 = 0x74;
const XOR: u16 = 0xa4;

/// The operand is X (BPF_X).
const SOURCE_X: u16 = 0x08;

fn plain(code: u16, operand: u32) -> Instruction {
    Instruction { code, if_true: 0, if_false: 0, operand }
}

/// Loads from the packet.
fn load(size: u16, offset: u32) -> Instruction {
    plain(size | 0x20, offset)
}

fn with(operation: u16, value: u32) -> Instruction {
    plain(operation, value)
}

fn with_x(operation: u16) -> Instruction {
    plain(operation | SOURCE_X, 0)
}

fn to_x() -> Instruction {
    plain(0x07, 0)
}

fn store(cell: u32) -> Instruction {
    plain(0x02, cell)
}

fn recall(cell: u32) -> Instruction {
    plain(0x60, cell)
}

fn recall_x(cell: u32) -> Instruction {
    plain(0x61, cell)
}

fn give(bytes: u32) -> Instruction {
    plain(0x06, bytes)
}

fn jump(length: usize) -> Instruction {
    plain(0x05, u32::try_from(length).expect("a program has 4,096 instructions"))
}

fn if_equal(value: u32, if_true: u8, if_false: u8) -> Instruction {
    Instruction { code: 0x15, if_true, if_false, operand: value }
}

fn if_equal_x(if_true: u8, if_false: u8) -> Instruction {
    Instruction { code: 0x1d, if_true, if_false, operand: 0 }
}

fn if_at_least(value: u32, if_true: u8, if_false: u8) -> Instruction {
    Instruction { code: 0x35, if_true, if_false, operand: value }
}

#[cfg(test)]
mod tests {
    use super::super::known::WORDS;
    use super::*;

    #[test]
    fn the_longest_program_is_one_that_the_kernel_takes() {
        let known = KnownSources::from_words(1, &[u32::MAX; WORDS]);
        let network = |number: usize| {
            (Network::new(IpAddr::from((number as u128 + 0x2001_0db8_0000).to_be_bytes()), 64), 0.5)
        };
        let networks: Vec<_> = (0..MAX_NETWORKS + 1).map(network).collect();
        let shares = SynShares { salt: 1, networks: &networks, known: Some((&known, 0.1)), others: 0.9 };
        let length = drop_shares(&shares).len();
        assert!(length < 4_096, "{length}");
    }
}
