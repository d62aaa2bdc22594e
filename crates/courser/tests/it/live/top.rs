//! `courser top` in a terminal, in a pipe, and for programs.

use std::process::Command;

use courser_testkit::client::Version;
use courser_testkit::{Courser, OriginServer, require};
use serde_json::Value;

use crate::stage::{Stage, content, run, run_courser};

/// A terminal of Python's around the program: what it draws, how it ends, and what it leaves behind.
const TERMINAL: &str = r#"
import fcntl, os, pty, re, select, signal, struct, sys, termios, time
program, control, how = sys.argv[1:4]
master, slave = pty.openpty()
def resize(rows, columns):
    fcntl.ioctl(master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
resize(40, 100)
before = termios.tcgetattr(slave)
child = os.fork()
if child == 0:
    os.setsid()
    fcntl.ioctl(slave, termios.TIOCSCTTY, 0)
    for number in (0, 1, 2):
        os.dup2(slave, number)
    os.execv(program, [program, "top", "--control", control])
drawn = b""
def read():
    global drawn
    if select.select([master], [], [], 0.1)[0]:
        drawn += os.read(master, 65536)
# What stands on the screen: a program draws only what has changed, so its words come in pieces.
def screen():
    cells, row, column = {}, 1, 1
    for move, clear, _, character in re.findall(r"\x1b\[(\d+;\d+)H|\x1b\[(2J)|(\x1b\[[^@-~]*[@-~])|(.)", drawn.decode(errors="replace")):
        if move:
            row, column = map(int, move.split(";"))
        elif clear:
            cells = {}
        elif character:
            cells[row, column] = character
            column += 1
    return "\n".join("".join(cells.get((row, column), " ") for column in range(1, 101)) for row in range(1, 41))
def until(is_there, text):
    end = time.monotonic() + 30
    while not is_there(text):
        assert time.monotonic() < end, (text, screen())
        read()
def sent(text): until(lambda text: text in drawn, text)
def shown(text): until(lambda text: text in screen(), text)
sent(b"\x1b[?1049h")
shown("1 State")
shown("5 Workers")
assert termios.tcgetattr(slave)[3] & termios.ICANON == 0, "keys come one by one"
drawn = b""
resize(12, 60)
shown("q to quit")
os.write(master, b"\x1b[F")
shown("10 Fleet and")
if how == "key":
    os.write(master, b"q")
elif how == "control-c":
    os.write(master, b"\x03")
else:
    os.kill(child, signal.SIGTERM)
sent(b"\x1b[?1049l")
_, status = os.waitpid(child, 0)
assert os.waitstatus_to_exitcode(status) == 0, status
assert termios.tcgetattr(slave) == before, "the terminal is as it was"
"#;

/// The program, with a control socket.
fn controlled(stage: &Stage, origin: &OriginServer) -> (Courser, String) {
    let control = stage.folder.join("control.sock").display().to_string();
    (stage.courser().backend(origin.backend()).args(["--control", &control]).start(), control)
}

#[test]
fn in_a_terminal_it_draws_follows_its_size_and_leaves_it_as_it_was() {
    let (stage, origin) = (Stage::new(), OriginServer::http());
    let (_courser, control) = controlled(&stage, &origin);
    let Some(python) = require("python3") else { return };
    for how in ["key", "control-c", "signal"] {
        let mut command = Command::new(&python);
        content(run(command.args(["-c", TERMINAL, env!("CARGO_BIN_EXE_courser"), &control, how])));
    }
}

#[test]
fn in_a_pipe_it_says_what_to_do_instead() {
    let (stage, origin) = (Stage::new(), OriginServer::http());
    let (courser, control) = controlled(&stage, &origin);
    let refused = run_courser(&["top", "--control", &control]);
    assert_eq!(refused.status.code(), Some(1), "{}", refused.stderr);
    assert!(refused.stderr.contains("`--once` prints one frame"), "{}", refused.stderr);
    stage.client(&courser, Version::Tls13).connect().unwrap().get(1000, true).unwrap();
    let frame = content(run_courser(&["top", "--once", "--control", &control]));
    for part in ["✓ ready", "2 Handshakes", "TLSv1.3", "10 Fleet and sessions"] {
        assert!(frame.contains(part), "no {part} in {frame}");
    }
    let missing = run_courser(&["top", "--once", "--control", "/nonexistent/control.sock"]);
    assert_eq!(missing.status.code(), Some(1));
    assert!(missing.stderr.contains("no program has opened it"), "{}", missing.stderr);
}

#[test]
fn for_programs_it_prints_a_status_each_second() {
    let (stage, origin) = (Stage::new(), OriginServer::http());
    let (_courser, control) = controlled(&stage, &origin);
    let mut command = Command::new("sh");
    let head = "\"$0\" top --json --control \"$1\" | head -2";
    let lines = content(run(command.args(["-c", head, env!("CARGO_BIN_EXE_courser"), &control])));
    let statuses: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(statuses.len(), 2);
    assert!(statuses[0]["recent"].is_null() && statuses[1]["recent"]["seconds"].is_number(), "{lines}");
}
