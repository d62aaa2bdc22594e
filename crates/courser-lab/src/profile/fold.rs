//! Stacks, added up: into what flame graphs are drawn from, and into the functions that ran most.

use std::collections::{BTreeMap, HashMap};
use std::fmt::Write;

use courser_record::lab::Symbol;

use super::class;
use super::script::Frame;

/// Of what is kept, at most: a report has to hold one for each target.
const LARGEST: usize = 30_000;

/// Symbols that are kept: below, single samples decide on the order.
const SYMBOLS: usize = 30;

/// Characters of a name, at most. Those of generic functions can be pages long.
const LONGEST: usize = 70;

/// One line for each stack, frames joined by `;` from the outermost, then how often. What is in less than two
/// samples of a thousand counts for who called it; in less still, when it would be too much text. Counts add
/// up to all samples.
pub(super) fn folded(stacks: &[&[Frame]]) -> String {
    let mut root = Node::default();
    for stack in stacks {
        root.add(stack);
    }
    let mut least = stacks.len() as u64 / 500 + 1;
    loop {
        root.prune(least);
        let text = root.text();
        if text.len() <= LARGEST || least > stacks.len() as u64 {
            return text;
        }
        least += least / 2 + 1;
    }
}

/// The functions that ran most, with what their time counts as.
pub(super) fn symbols(stacks: &[&[Frame]]) -> Vec<Symbol> {
    let mut counts: HashMap<(&Frame, class::Class), u64> = HashMap::new();
    for stack in stacks {
        if let Some(frame) = stack.first() {
            *counts.entry((frame, class::of(stack))).or_default() += 1;
        }
    }
    let symbol = |((frame, class), count): ((&Frame, class::Class), u64)| Symbol {
        name: short(&frame.symbol),
        object: frame.object.clone(),
        class: class.name().to_owned(),
        count,
    };
    let mut symbols: Vec<Symbol> = counts.into_iter().map(symbol).collect();
    let order = |one: &Symbol| {
        (std::cmp::Reverse(one.count), one.name.clone(), one.object.clone(), one.class.clone())
    };
    symbols.sort_by_cached_key(order);
    symbols.truncate(SYMBOLS);
    symbols
}

/// A function, as called from where it stands. At most as deep as a stack, which is bounded.
#[derive(Default)]
struct Node {
    /// Samples in which it ran itself.
    own: u64,
    called: BTreeMap<String, Self>,
}

impl Node {
    fn add(&mut self, stack: &[Frame]) {
        let mut node = self;
        for frame in stack.iter().rev() {
            node = node.called.entry(short(&frame.symbol)).or_default();
        }
        node.own += 1;
    }

    fn total(&self) -> u64 {
        self.own + self.called.values().map(Self::total).sum::<u64>()
    }

    fn prune(&mut self, least: u64) {
        for child in self.called.values_mut() {
            child.prune(least);
        }
        let total = self.total();
        self.called.retain(|_, child| child.total() >= least);
        self.own = total - self.called.values().map(Self::total).sum::<u64>();
    }

    fn text(&self) -> String {
        let mut text = String::new();
        if self.own > 0 {
            line(&mut text, "[rest]", self.own);
        }
        for (name, child) in &self.called {
            child.write(name, &mut text);
        }
        text
    }

    fn write(&self, path: &str, text: &mut String) {
        if self.own > 0 {
            line(text, path, self.own);
        }
        for (name, child) in &self.called {
            child.write(&format!("{path};{name}"), text);
        }
    }
}

fn line(text: &mut String, path: &str, count: u64) {
    writeln!(text, "{path} {count}").expect("a string takes whatever is written");
}

/// Without what separates frames and lines; a long name in the middle of which something is left out.
fn short(symbol: &str) -> String {
    let clean = |letter: char| if letter == ';' || letter.is_control() { ':' } else { letter };
    let letters: Vec<char> = symbol.chars().map(clean).collect();
    if letters.len() <= LONGEST {
        return letters.into_iter().collect();
    }
    let (head, tail) = (&letters[..LONGEST / 2], &letters[letters.len() - LONGEST / 2 + 2..]);
    head.iter().chain(['.', '.'].iter()).chain(tail).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stack(names: &[&str]) -> Vec<Frame> {
        let frame = |name: &&str| Frame { symbol: (*name).into(), object: "x".into() };
        names.iter().rev().map(frame).collect()
    }

    fn refer(stacks: &[Vec<Frame>]) -> Vec<&[Frame]> {
        stacks.iter().map(Vec::as_slice).collect()
    }

    #[test]
    fn stacks_begin_with_the_outermost() {
        let stacks = [stack(&["main", "a"]), stack(&["main", "a"]), stack(&["main", "b", "c;d"])];
        assert_eq!(folded(&refer(&stacks)), "main;a 2\nmain;b;c:d 1\n");
    }

    #[test]
    fn what_is_rare_counts_for_its_caller() {
        let mut stacks = vec![stack(&["main", "often"]); 1998];
        stacks.push(stack(&["main", "often", "once"]));
        stacks.push(stack(&["lost"]));
        assert_eq!(folded(&refer(&stacks)), "[rest] 1\nmain;often 1999\n");
    }

    #[test]
    fn it_stays_small_and_adds_up() {
        let names: Vec<String> = (0..400).map(|number| format!("{number:0>300}")).collect();
        let stacks: Vec<_> =
            (0..8000).map(|at| stack(&["main", "x", &names[at % 400], &names[at % 7]])).collect();
        let text = folded(&refer(&stacks));
        assert!(text.len() <= LARGEST, "{}", text.len());
        let count = |line: &str| line.rsplit_once(' ').unwrap().1.parse::<u64>().unwrap();
        assert_eq!(text.lines().map(count).sum::<u64>(), 8000);
    }

    #[test]
    fn the_function_that_ran_most_is_first() {
        let stacks = [stack(&["main", "aes"]), stack(&["main"]), stack(&["main", "aes"])];
        let symbols = symbols(&refer(&stacks));
        assert_eq!((&*symbols[0].name, &*symbols[0].class, symbols[0].count), ("aes", "crypto", 2));
        assert_eq!((&*symbols[1].name, &*symbols[1].class, symbols[1].count), ("main", "proxy", 1));
    }
}
