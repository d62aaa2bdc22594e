//! `courser top`: asks the running program each second, and draws what it says until `q`.

use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};
use std::thread;
use std::time::Duration;

use clap::ArgMatches;
use ratatui::DefaultTerminal;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use ratatui::layout::Rect;
use signal_hook::consts::{SIGHUP, SIGTERM};

use crate::cmd::fleet::{cannot_query, control_path, print};
use crate::exit::Failure;
use crate::status::{self, Status};
use crate::top::{View, text};
use crate::{control, hardening};

/// What the program is asked for.
const REQUEST: &str = "status watch";

/// Columns of a frame that goes to no terminal.
const COLUMNS: u16 = 120;

/// How often keys, signals and news are looked at.
const LOOK: Duration = Duration::from_millis(100);

/// Between two attempts to reach a program that has gone.
const PAUSE: Duration = Duration::from_secs(1);

pub(crate) fn top(flags: &ArgMatches) -> Result<ExitCode, Failure> {
    hardening::harden_fully()?;
    let socket = control_path(flags);
    if flags.get_flag("json") {
        return watch_json(&socket);
    }
    if flags.get_flag("once") {
        return once(&socket);
    }
    if !io::stdout().is_terminal() || !io::stdin().is_terminal() {
        return Err(Failure::runtime(
            "cannot draw",
            "standard input and output have to be a terminal; `--once` prints one frame, `--json` a line each second",
        ));
    }
    live(socket)
}

/// The statuses as they come, until the reader or the program has gone.
fn watch_json(socket: &Path) -> Result<ExitCode, Failure> {
    control::query(socket, REQUEST, |line| print(&format!("{line}\n")).is_ok())
        .map_err(|error| cannot_query(socket, &error))?;
    Ok(ExitCode::SUCCESS)
}

/// The second status has what has happened since the first.
fn once(socket: &Path) -> Result<ExitCode, Failure> {
    let (mut view, mut seen, mut failure) = (View::default(), 0, None);
    let asked = control::query(socket, REQUEST, |line| {
        match status::read_status(line) {
            Ok(status) => view.take(status),
            Err(why) => failure = Some(why),
        }
        seen += 1;
        seen < 2 && failure.is_none()
    });
    asked.map_err(|error| cannot_query(socket, &error))?;
    if let Some(why) = failure {
        return Err(no_answer(socket, &why));
    }
    // A reader that closes early (`| head`) has seen enough.
    let _ = print(&text(&view, COLUMNS));
    Ok(ExitCode::SUCCESS)
}

fn no_answer(socket: &Path, why: &str) -> Failure {
    Failure::runtime(format_args!("{} does not answer", socket.display()), why)
}

type News = Result<Status, String>;

fn live(socket: PathBuf) -> Result<ExitCode, Failure> {
    // Before anything is drawn: who has named a wrong path wants to read that.
    let first = ask_once(&socket)?;
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [SIGTERM, SIGHUP] {
        signal_hook::flag::register(signal, Arc::clone(&stop))
            .map_err(|error| Failure::runtime("cannot watch for signals", error))?;
    }
    let (sender, news) = channel();
    thread::spawn(move || follow(&socket, &sender));
    let mut terminal = ratatui::try_init().map_err(|error| Failure::runtime("cannot draw", error))?;
    let mut view = View::default();
    view.take(first);
    let drawn = draw_until(&mut terminal, &mut view, &news, &stop);
    ratatui::restore();
    drawn.map_err(|error| Failure::runtime("cannot draw", error))?;
    Ok(ExitCode::SUCCESS)
}

fn ask_once(socket: &Path) -> Result<Status, Failure> {
    let mut answer = Err("it has closed the connection".to_owned());
    control::query(socket, REQUEST, |line| {
        answer = status::read_status(line);
        false
    })
    .map_err(|error| cannot_query(socket, &error))?;
    answer.map_err(|why| no_answer(socket, &why))
}

/// Sends what the program says, also when another process takes its place, until nobody listens.
fn follow(socket: &Path, news: &Sender<News>) {
    loop {
        let mut is_heard = true;
        let ended = control::query(socket, REQUEST, |line| {
            is_heard = news.send(status::read_status(line)).is_ok();
            is_heard
        });
        // Where it has only ended its answer, it drains: who comes next is asked without a word.
        if let Err(error) = ended {
            is_heard = news.send(Err(error.to_string())).is_ok();
        }
        if !is_heard {
            return;
        }
        thread::sleep(PAUSE);
    }
}

fn draw_until(
    terminal: &mut DefaultTerminal,
    view: &mut View,
    news: &Receiver<News>,
    stop: &AtomicBool,
) -> io::Result<()> {
    let mut is_new = true;
    while !stop.load(Ordering::Relaxed) {
        if is_new {
            let size = terminal.size()?;
            view.scroll = view.scroll.min(view.furthest(size.width, size.height));
            terminal.draw(|frame| frame.render_widget(&*view, frame.area()))?;
        }
        is_new = false;
        if event::poll(LOOK)? {
            is_new = true;
            match event::read()? {
                Event::Key(key) if is_end(key) => return Ok(()),
                Event::Key(key) if key.kind != KeyEventKind::Release => {
                    scroll(view, key.code, terminal.size()?.into());
                }
                _ => {}
            }
        }
        loop {
            match news.try_recv() {
                Ok(Ok(status)) => view.take(status),
                Ok(Err(why)) => view.silence = Some(why),
                Err(TryRecvError::Empty | TryRecvError::Disconnected) => break,
            }
            is_new = true;
        }
    }
    Ok(())
}

/// In raw mode Ctrl-C is a key.
fn is_end(key: KeyEvent) -> bool {
    let is_control_c = key.code == KeyCode::Char('c') && key.modifiers.contains(KeyModifiers::CONTROL);
    is_control_c || matches!(key.code, KeyCode::Char('q' | 'Q') | KeyCode::Esc)
}

fn scroll(view: &mut View, key: KeyCode, area: Rect) {
    let page = area.height.saturating_sub(2);
    let furthest = view.furthest(area.width, area.height);
    view.scroll = match key {
        KeyCode::Up | KeyCode::Char('k') => view.scroll.saturating_sub(1),
        KeyCode::Down | KeyCode::Char('j') => view.scroll.saturating_add(1).min(furthest),
        KeyCode::PageUp => view.scroll.saturating_sub(page),
        KeyCode::PageDown | KeyCode::Char(' ') => view.scroll.saturating_add(page).min(furthest),
        KeyCode::Home => 0,
        KeyCode::End => furthest,
        _ => view.scroll,
    };
}
