//! `courser top`: the status as the live page has it, in the terminal. What is drawn is a pure function of what is known;
//! may not compute what the server can say.

mod sections;
mod table;

use std::collections::VecDeque;

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::{Modifier, Style};
use ratatui::text::Line;
use ratatui::widgets::{Paragraph, Widget};

use crate::status::Status;

/// Seconds that lines go back, as on the page.
const PAST: usize = 300;

/// What is known, and how far it is scrolled.
#[derive(Default)]
pub(crate) struct View {
    /// None until the program has answered.
    pub(crate) status: Option<Status>,
    /// A point each second, the newest last.
    past: VecDeque<Point>,
    /// Why the program does not answer.
    pub(crate) silence: Option<String>,
    /// Lines that are above the screen.
    pub(crate) scroll: u16,
}

/// What lines show of a second.
struct Point {
    handshakes: f64,
    failures: f64,
}

impl View {
    /// A new status has come.
    pub(crate) fn take(&mut self, status: Status) {
        if let Some(recent) = &status.recent {
            self.past.truncate(PAST - 1);
            self.past.push_front(Point {
                handshakes: recent.handshakes.values().sum(),
                failures: status.failures.iter().map(|row| row.rate).sum(),
            });
        }
        (self.status, self.silence) = (Some(status), None);
    }

    /// Lines of so many columns.
    pub(crate) fn lines(&self, width: u16) -> Vec<Line<'static>> {
        let mut lines = Vec::new();
        if let Some(why) = &self.silence {
            lines.push(Line::styled(format!("✗ No word from the program ({why}); asking again."), bad()));
        }
        match &self.status {
            Some(status) => sections::all(status, &self.past, usize::from(width), &mut lines),
            None if self.silence.is_none() => lines.push(Line::raw("Asking the program.")),
            None => {}
        }
        lines
    }

    /// How far it can be scrolled where the screen is so large.
    pub(crate) fn furthest(&self, width: u16, height: u16) -> u16 {
        let lines = u16::try_from(self.lines(width).len()).unwrap_or(u16::MAX);
        lines.saturating_sub(height.saturating_sub(1))
    }
}

impl Widget for &View {
    fn render(self, area: Rect, buffer: &mut Buffer) {
        let [body, foot] = [
            Rect { height: area.height.saturating_sub(1), ..area },
            Rect { y: area.bottom().saturating_sub(1), height: area.height.min(1), ..area },
        ];
        Paragraph::new(self.lines(area.width)).scroll((self.scroll, 0)).render(body, buffer);
        let more = self.furthest(area.width, area.height).saturating_sub(self.scroll);
        let more = if more > 0 { format!("{more} more lines below, ") } else { String::new() };
        let keys = format!("{more}↑ ↓ PgUp PgDn to scroll, q to quit");
        Line::styled(keys, Style::new().add_modifier(Modifier::DIM)).render(foot, buffer);
    }
}

/// A frame without a terminal: all of it, as lines of text.
pub(crate) fn text(view: &View, width: u16) -> String {
    let lines = view.lines(width);
    let area = Rect::new(0, 0, width, u16::try_from(lines.len()).unwrap_or(u16::MAX));
    let mut buffer = Buffer::empty(area);
    Paragraph::new(lines).render(area, &mut buffer);
    let mut text = String::new();
    for row in buffer.content().chunks(usize::from(width.max(1))) {
        let line: String = row.iter().map(ratatui::buffer::Cell::symbol).collect();
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

fn bad() -> Style {
    Style::new().add_modifier(Modifier::BOLD).fg(ratatui::style::Color::Red)
}

#[cfg(test)]
mod tests;
