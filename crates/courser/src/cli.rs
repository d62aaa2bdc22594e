//! The command line. The flags of `serve` and `check` come from the table of settings in `courser-config`; help, man
//! page and completions come from here.

use clap::{Arg, Command, value_parser};
use clap_complete::Shell;

const AFTER_HELP: &str = "\
Examples:
  courser serve --listen '*:8443' --backend 127.0.0.1:8080
  courser serve --listen '*:443' --cert site-ecdsa.pem --cert site-rsa.pem --backend 10.0.0.3:80 --send-proxy v2
  courser check --config courser.toml
  courser config defaults > courser.toml

Signals:
  SIGTERM, SIGINT   stop accepting, let connections finish until the drain timeout; a second one stops at once

Exit codes:
  0  done; for `check`: nothing is wrong
  1  the system refused something, or a worker failed
  2  the command line, the configuration or a file that it names is wrong";

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
        .subcommand(config())
        .subcommand(
            Command::new("man")
                .about("Print the manual page (for `man -l -`)")
                .after_help("Example:\n  courser man > courser.1"),
        )
        .subcommand(completions())
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
