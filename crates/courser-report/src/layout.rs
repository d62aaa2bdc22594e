//! Lines and tables, in a width, with colours only where they are wanted.

/// What the terminal can do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Style {
    /// Whether to send colours (ECMA-48, SGR).
    pub colour: bool,
    /// Columns; running text is broken to fit, tables are not.
    pub width: usize,
}

impl Default for Style {
    fn default() -> Self {
        Self { colour: false, width: 110 }
    }
}

/// What a line is, for its colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tone {
    /// As it is.
    Plain,
    /// The name of a section.
    Heading,
    /// It holds.
    Good,
    /// It holds, with a caution.
    Warning,
    /// It does not hold.
    Bad,
}

impl Tone {
    /// ECMA-48, section 8.3.117: bold, green, yellow, red.
    fn code(self) -> Option<&'static str> {
        match self {
            Self::Plain => None,
            Self::Heading => Some("1"),
            Self::Good => Some("1;32"),
            Self::Warning => Some("33"),
            Self::Bad => Some("1;31"),
        }
    }
}

/// A page that grows by lines.
#[derive(Debug)]
pub struct Page {
    style: Style,
    text: String,
}

impl Page {
    /// An empty one.
    pub fn new(style: Style) -> Self {
        Self { style, text: String::new() }
    }

    /// The name of a section, an empty line before it.
    pub fn heading(&mut self, name: &str) {
        self.text.push('\n');
        self.line(Tone::Heading, name);
    }

    /// One line, however long.
    pub fn line(&mut self, tone: Tone, text: &str) {
        let text = harmless(text);
        match tone.code().filter(|_| self.style.colour) {
            Some(code) => self.text.push_str(&format!("\x1b[{code}m{}\x1b[0m", text.trim_end())),
            None => self.text.push_str(text.trim_end()),
        }
        self.text.push('\n');
    }

    /// Running text: `label` in front of the first line, spaces in front of the others.
    pub fn paragraph(&mut self, tone: Tone, label: &str, text: &str) {
        let room = self.style.width.saturating_sub(label.chars().count());
        let lines = wrapped(text, room.max(20));
        for (index, line) in lines.iter().enumerate() {
            let blank = " ".repeat(label.chars().count());
            let front = if index == 0 { label } else { &blank };
            self.line(tone, &format!("{front}{line}"));
        }
    }

    /// Rows with columns as wide as their widest cell: the first to the left, the others to the right.
    pub fn table(&mut self, rows: &[Vec<String>]) {
        let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
        let width = |column: usize| {
            rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..columns).map(width).collect();
        for row in rows {
            self.line(Tone::Plain, &aligned(row, &widths));
        }
    }

    /// All of it.
    pub fn finish(self) -> String {
        self.text
    }
}

fn aligned(row: &[String], widths: &[usize]) -> String {
    let mut line = String::from(" ");
    for (index, (cell, width)) in row.iter().zip(widths).enumerate() {
        line.push_str(&if index == 0 { format!(" {cell:<width$}") } else { format!("  {cell:>width$}") });
    }
    line
}

/// Broken at spaces; a longer word stands alone.
fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        let line = lines.last_mut().expect("there is a line from the start");
        if line.is_empty() {
            line.push_str(word);
        } else if line.chars().count() + 1 + word.chars().count() <= width {
            line.push(' ');
            line.push_str(word);
        } else {
            lines.push(word.to_owned());
        }
    }
    lines
}

/// Without what a terminal would obey, or XML 1.0 forbids (section 2.2).
pub(crate) fn harmless(text: &str) -> String {
    text.chars().map(|char| if char.is_control() { char::REPLACEMENT_CHARACTER } else { char }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn running_text_keeps_to_the_width() {
        let mut page = Page::new(Style { colour: false, width: 30 });
        page.paragraph(Tone::Plain, "note  ", "one two three four five six seven");
        assert_eq!(page.finish(), "note  one two three four five\n      six seven\n");
    }

    #[test]
    fn a_server_does_not_write_to_the_terminal() {
        let mut page = Page::new(Style { colour: true, width: 80 });
        page.line(Tone::Bad, "alert \x1b[2J\u{9b}2J\r");
        assert_eq!(page.finish(), "\x1b[1;31malert \u{fffd}[2J\u{fffd}2J\u{fffd}\x1b[0m\n");
    }

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let mut page = Page::new(Style::default());
        let row = |cells: [&str; 2]| cells.map(str::to_owned).to_vec();
        page.table(&[row(["", "count"]), row(["full", "7"])]);
        assert_eq!(page.finish(), "        count\n  full      7\n");
    }
}
