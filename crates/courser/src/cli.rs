//! The command line. The flags of `serve` and `check` come from the table of settings in `courser-config`; help, man
//! page and completions come from here.

use std::path::PathBuf;

use clap::{Arg, ArgAction, ArgGroup, Command, value_parser};
use clap_complete::Shell;

const AFTER_HELP: &str = "\
Examples:
  courser serve --listen '*:8443' --backend 127.0.0.1:8080
  courser serve --listen '*:443' --cert site-ecdsa.pem --cert site-rsa.pem --backend 10.0.0.3:80 --send-proxy v2
  courser check --config courser.toml
  courser fleet keygen --out /etc/courser/fleet.key
  courser config defaults > courser.toml

Signals:
  SIGTERM, SIGINT   stop accepting, let connections finish until the drain timeout; a second one stops at once

Exit codes:
  0  done; for `check`: nothing is wrong
  1  the system refused something, or a part of the program failed
  2  the command line, the configuration or a file that it names is wrong
  3  connections were still open at the end of the drain timeout, or at the second signal, and were cut off";

/// The whole command line.
pub(crate) fn command() -> Command {
    Command::new("courser")
        .version(env!("CARGO_PKG_VERSION"))
        .about("Terminates TLS 1.2 and 1.3 on every core and relays plain bytes to backends")
        .after_help(AFTER_HELP)
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommand(courser_config::serve_command())
        .subcommand(courser_config::check_command())
        .subcommand(fleet())
        .subcommand(config())
        .subcommand(
            Command::new("man")
                .about("Print the manual page (for `man -l -`)")
                .after_help("Example:\n  courser man > courser.1"),
        )
        .subcommand(completions())
}

fn fleet() -> Command {
    Command::new("fleet")
        .about("Make keys for hosts that share sessions, and see how they get on")
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommand(keygen())
        .subcommand(export())
        .subcommand(asking("status", "Show this host's keys, its cache and the others it hears", STATUS_HELP))
        .subcommand(asking("watch", "Show messages between hosts as they pass, without secrets", WATCH_HELP))
}

const STATUS_HELP: &str = "\
Example:
  courser fleet status --control /run/courser/control.sock";

const WATCH_HELP: &str = "\
Example, for messages that were refused:
  courser fleet watch --json | grep refused";

fn keygen() -> Command {
    Command::new("keygen")
        .about("Make the secret of a new fleet, in a file for its hosts")
        .arg(out())
        .arg(
            Arg::new("epoch")
                .long("epoch")
                .value_name("DURATION")
                .value_parser(courser_config::duration)
                .default_value("8h")
                .help("How long one key seals, from 60s to 7d: all hosts then roll to the next"),
        )
        .after_help("Example:\n  courser fleet keygen --out /etc/courser/fleet.key")
}

fn export() -> Command {
    Command::new("export")
        .about("Write the keys of today for a host that joins: they lead to none of before")
        .arg(out())
        .arg(file("state").value_name("DIR").help("Folder with a host's state (`serve --fleet-state`)"))
        .arg(file("key").help("Key file, where the fleet still has it"))
        .group(ArgGroup::new("source").args(["state", "key"]).required(true))
        .arg(
            Arg::new("lifetime")
                .long("session-lifetime")
                .value_name("DURATION")
                .value_parser(courser_config::duration)
                .default_value("2h")
                .help("With --key: how long sessions live, as for `serve`"),
        )
        .after_help("Example:\n  courser fleet export --state /var/lib/courser --out joiner.state")
}

/// A command that asks a running program.
fn asking(name: &'static str, about: &'static str, examples: &'static str) -> Command {
    let control = file("control")
        .default_value("/run/courser/control.sock")
        .help("Where the program listens for questions (`serve --control`)");
    let json = Arg::new("json").long("json").action(ArgAction::SetTrue).help("Print JSON, a line each");
    Command::new(name).about(about).arg(control).arg(json).after_help(examples)
}

fn out() -> Arg {
    file("out").required(true).help("File to write; it must not be there yet")
}

fn file(name: &'static str) -> Arg {
    Arg::new(name).long(name).value_name("FILE").value_parser(value_parser!(PathBuf))
}

fn config() -> Command {
    Command::new("config")
        .about("Tell about the configuration")
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommand(
            Command::new("defaults")
                .about("Print every setting with its default, as a commented configuration file")
                .after_help("Example:\n  courser config defaults > courser.toml"),
        )
}

fn completions() -> Command {
    Command::new("completions")
        .about("Print a completion script for a shell")
        .after_help("Example:\n  courser completions bash > /etc/bash_completion.d/courser")
        .arg(Arg::new("shell").required(true).value_parser(value_parser!(Shell)).help("The shell"))
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_command_line_is_consistent() {
        super::command().debug_assert();
    }
}
