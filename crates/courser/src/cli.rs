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
  courser reload
  courser upgrade --binary /usr/local/bin/courser.new
  courser status
  courser top
  courser fleet keygen --out /etc/courser/fleet.key
  courser backend drain 10.0.1.2:8080
  courser acme status
  courser config defaults > courser.toml
  courser import hitch /etc/hitch/hitch.conf > courser.toml

Signals:
  SIGHUP            reload: read the configuration and its files again, as `courser reload` does
  SIGUSR1           open `log_file` and `events_file` anew, after they were renamed
  SIGTERM, SIGINT   stop accepting and drain: finish open connections until the drain timeout; a second one stops at once

Exit codes:
  0  success; for `check`: the configuration is valid
  1  the system refused an operation, or a part of the program failed
  2  the command line (a server that does not exist included), the configuration or a file that it names is invalid
  3  open connections were cut off at the end of the drain timeout, or at the second signal";

pub(crate) fn command() -> Command {
    let command = Command::new("courser")
        .version(env!("CARGO_PKG_VERSION"))
        .about("Terminate TLS 1.2 and 1.3 on every core and relay plaintext to backends")
        .after_help(AFTER_HELP)
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommand(courser_config::serve_command())
        .subcommand(check())
        .subcommand(reload())
        .subcommand(upgrade())
        .subcommand(query("status", "Print the state of the running program", STATUS_EXAMPLE))
        .subcommand(fleet())
        .subcommand(backend())
        .subcommand(acme())
        .subcommand(config())
        .subcommand(harden())
        .subcommand(import())
        .subcommand(
            Command::new("man")
                .about("Print the manual page (for `man -l -`)")
                .after_help("Example:\n  courser man > courser.1"),
        )
        .subcommand(completions());
    #[cfg(feature = "top")]
    let command = command.subcommand(top());
    command
}

#[cfg(feature = "top")]
fn top() -> Command {
    let once = Arg::new("once")
        .long("once")
        .action(ArgAction::SetTrue)
        .conflicts_with("json")
        .help("Print one frame after a second, for no terminal");
    query("top", "Show the state of the running program, each second, as the live page does", TOP_HELP)
        .arg(once)
}

#[cfg(feature = "top")]
const TOP_HELP: &str = "\
What is wrong stands first, with whose fault it is and what to do. Keys: arrows and PgUp, PgDn to scroll; q to quit.

Examples:
  courser top
  courser top --once | head -20
  courser top --json | jq -r '.findings[].what'";

fn check() -> Command {
    let against = Arg::new("against-running")
        .long("against-running")
        .action(ArgAction::SetTrue)
        .help("Print also what a reload of the running program would change (by its `control`)");
    courser_config::check_command().arg(against)
}

fn harden() -> Command {
    let nft = Arg::new("nft")
        .long("nft")
        .required(true)
        .action(ArgAction::SetTrue)
        .help("Print rules of nftables that limit new connections of each network");
    let port = Arg::new("port")
        .long("port")
        .value_name("PORTS")
        .value_delimiter(',')
        .default_value("443")
        .value_parser(value_parser!(u16).range(1..))
        .help("Ports that they are for");
    let rate = Arg::new("rate")
        .long("rate")
        .value_name("PER_SECOND")
        .default_value("200")
        .value_parser(value_parser!(u32).range(1..=1_000_000))
        .help("New connections a second of a network, with twice as many at once");
    Command::new("harden")
        .about("Print rules by which the kernel limits new connections, for who may load them")
        .args([nft, port, rate])
        .after_help("Example:\n  courser harden --nft --port 443,8443 > /etc/nftables.d/courser.nft")
}

fn reload() -> Command {
    let about = "Have the running program read its configuration and files again, and wait for it";
    query("reload", about, RELOAD_HELP).arg(
        Arg::new("dry-run")
            .long("dry-run")
            .action(ArgAction::SetTrue)
            .help("Only print what it would change"),
    )
}

fn upgrade() -> Command {
    let about = "Have a new program take over from the running one without a gap, and wait for it";
    let timeout = Arg::new("timeout")
        .long("timeout")
        .value_name("DURATION")
        .value_parser(courser_config::duration)
        .default_value("60s")
        .help("Time that the new program may say nothing, before the running one ends it and serves on");
    query("upgrade", about, UPGRADE_HELP)
        .arg(file("binary").help("Path of the new program [default: where the running one was started from]"))
        .arg(timeout)
}

const UPGRADE_HELP: &str = "\
The running program starts the new one with its own arguments and hands over: listening sockets with the clients in their
queues, ticket keys, sessions. The new one reads the configuration, and serves when everything is built. Then the running
one accepts no more and ends with its last connection, or after `hard_stop_after`. After any failure it serves on.

Exit codes:
  0  the new program serves
  1  the system refused, or the running program does not answer
  2  the new program cannot be started, has ended, hangs, speaks another protocol, or its configuration is invalid; another
     upgrade is under way; too many earlier processes still drain

Examples:
  courser upgrade
  courser upgrade --binary /usr/local/bin/courser.new";

const RELOAD_HELP: &str = "\
New connections are served by what the files say now; open ones go on as they began. After any mistake nothing is changed.

Exit codes:
  0  the new generation serves
  1  the program does not answer, or the system refused (an address in use)
  2  the configuration or a file that it names is invalid: the old generation serves on

Examples:
  courser reload
  courser reload --dry-run --control /run/courser-staging/control.sock";

fn fleet() -> Command {
    Command::new("fleet")
        .about("Manage fleet keys; print fleet status")
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommand(keygen())
        .subcommand(export())
        .subcommand(query("status", "Print this host's keys, session cache, counters and peers", STATUS_HELP))
        .subcommand(query("watch", "Print fleet messages as they pass (no secrets)", WATCH_HELP))
}

fn backend() -> Command {
    let name = || {
        Arg::new("name").value_name("NAME").required(true).help(
            "Server as `list` shows it, `POOL/SERVER` where several pools have it; a name stands for all its addresses",
        )
    };
    let percent = Arg::new("percent").value_name("PERCENT").required(true).value_parser(percent);
    Command::new("backend")
        .about("List the servers of pools; drain, enable and weigh them")
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommand(query("list", "Print each server's state, weight, connections and last check", LIST_HELP))
        .subcommand(
            query("drain", "Give a server no new connections, until the program ends", DRAIN_HELP)
                .arg(name()),
        )
        .subcommand(query("enable", "End the drain of a server", ENABLE_HELP).arg(name()))
        .subcommand(
            query("weight", "Set a server's weight for new connections, until the program ends", WEIGHT_HELP)
                .arg(name())
                .arg(percent.help("Percentage of the configured weight, 0% to 1000%")),
        )
}

fn acme() -> Command {
    let name = Arg::new("name").value_name("NAME").required(true).help("Name, or wildcard, of a certificate");
    let dry_run = Arg::new("dry-run")
        .long("dry-run")
        .action(ArgAction::SetTrue)
        .help("Order every certificate from a directory that is for trying, and keep nothing of it");
    let directory = Arg::new("directory").long("directory").value_name("URL").requires("dry-run").help(
        "Directory to try with [default: Let's Encrypt's staging, where the configured one is Let's Encrypt; else the \
         configured one]",
    );
    Command::new("acme")
        .about("Show what certificates are ordered; print the TXT record of one; order")
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommand(query(
            "status",
            "Print each ordered certificate: its end, the next order and why then, the last failure",
            ACME_STATUS_HELP,
        ))
        .subcommand(
            query("record", "Print the TXT record by which a CA knows for good who has a name", RECORD_HELP)
                .arg(name),
        )
        .subcommand(
            query("order", "Order at once what waits after a failure, and wait for it", ORDER_HELP)
                .args([dry_run, directory]),
        )
}

const ACME_STATUS_HELP: &str = "\
Examples:
  courser acme status
  courser acme status --json | jq -r 'select(.failures > 0) | \"\\(.names[0]): \\(.failure.words)\"'";

const RECORD_HELP: &str = "\
The record (dns-persist-01) stays in DNS: no renewal changes it. Who has the key of the account can order for the name as
long as the record stands; a new account needs another one.

Exit codes:
  0  printed
  1  the program does not answer, or the CA
  2  the name is none that is ordered here

Example:
  courser acme record shop.example";

const ORDER_HELP: &str = "\
Certificates that are valid are not ordered again: a CA counts them.

Exit codes:
  0  every certificate is there; with --dry-run: could be had
  1  one is not, or the program does not answer

Examples:
  courser acme order
  courser acme order --dry-run";

/// Reads `50%` or `50`.
fn percent(text: &str) -> Result<u16, String> {
    let number = text.strip_suffix('%').unwrap_or(text).parse().ok();
    number
        .filter(|percent| *percent <= 1000)
        .ok_or_else(|| "write for example `50%`, at most `1000%`".to_owned())
}

const LIST_HELP: &str = "\
States: up; starting, with less than its share after it was away; ejected, after failures; down, by its checks; draining.

Examples:
  courser backend list
  courser backend list --json | jq -r 'select(.state != \"up\") | \"\\(.pool)/\\(.server) \\(.state)\"'";

const DRAIN_HELP: &str = "\
Open connections go on; `list` shows how many are left. Of a server that its agent has drained too, `enable` ends one
drain of the two.

Examples:
  courser backend drain 10.0.1.2:8080
  courser backend drain shop/app.internal:8080";

const ENABLE_HELP: &str = "\
Its weight stays as it was set. It gets a tenth of its share at first, and the whole after half a minute.

Example:
  courser backend enable 10.0.1.2:8080";

const WEIGHT_HELP: &str = "\
0% drains. What an agent says of the weight counts as well: the two multiply.

Example:
  courser backend weight 10.0.1.2:8080 50%";

const STATUS_EXAMPLE: &str = "\
Example:
  courser status --json";

const STATUS_HELP: &str = "\
Example:
  courser fleet status";

const WATCH_HELP: &str = "\
Example, for refused messages:
  courser fleet watch --json | grep refused";

fn keygen() -> Command {
    Command::new("keygen")
        .about("Generate the key file of a new fleet")
        .arg(out())
        .arg(
            Arg::new("epoch")
                .long("epoch")
                .value_name("DURATION")
                .value_parser(courser_config::duration)
                .default_value("8h")
                .help("Lifetime of a ticket key, 60s to 7d; all hosts roll to the next key at its end"),
        )
        .after_help("Example:\n  courser fleet keygen --out /etc/courser/fleet.key")
}

fn export() -> Command {
    Command::new("export")
        .about("Export the current key state for a new host (earlier keys cannot be derived)")
        .arg(out())
        .arg(
            file("state")
                .value_name("DIR")
                .help("Path of the folder with a host's state (`serve --fleet-state`)"),
        )
        .arg(file("key").help("Path of the key file, if the fleet still has it"))
        .group(ArgGroup::new("source").args(["state", "key"]).required(true))
        .arg(
            Arg::new("lifetime")
                .long("session-lifetime")
                .value_name("DURATION")
                .value_parser(courser_config::duration)
                .default_value("2h")
                .help("Lifetime of sessions (with --key; same value as for `serve`)"),
        )
        .after_help("Example:\n  courser fleet export --state /var/lib/courser --out joiner.state")
}

/// A command that queries a running program.
fn query(name: &'static str, about: &'static str, examples: &'static str) -> Command {
    let control = file("control").help(
        "Path of the control socket (`serve --control`) [default: /run/courser/control.sock, or \
         $XDG_RUNTIME_DIR/courser/control.sock]",
    );
    let json =
        Arg::new("json").long("json").action(ArgAction::SetTrue).help("Print JSON, one object per line");
    Command::new(name).about(about).arg(control).arg(json).after_help(examples)
}

fn out() -> Arg {
    file("out").required(true).help("Path of the file to write; it must not exist yet")
}

fn file(name: &'static str) -> Arg {
    Arg::new(name).long(name).value_name("FILE").value_parser(value_parser!(PathBuf))
}

fn config() -> Command {
    Command::new("config")
        .about("Print configuration templates")
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommand(
            Command::new("defaults")
                .about("Print every setting with its default, as a commented configuration file")
                .after_help("Example:\n  courser config defaults > courser.toml"),
        )
}

fn import() -> Command {
    let program = |name: &'static str, title: &str, path: &str| {
        let example = format!("Example:\n  courser import {name} {path} > courser.toml");
        let source = Arg::new("file")
            .value_name("FILE")
            .value_parser(value_parser!(PathBuf))
            .required(true)
            .help("Path of its configuration file");
        Command::new(name).about(format!("Import a configuration of {title}")).arg(source).after_help(example)
    };
    let arguments = Arg::new("arguments")
        .num_args(1..)
        .required(true)
        .trailing_var_arg(true)
        .allow_hyphen_values(true)
        .help("Its command line, without the program's name");
    Command::new("import")
        .about("Print another terminator's configuration as one of courser; what has no counterpart is named")
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommand(program("hitch", "hitch", "/etc/hitch/hitch.conf"))
        .subcommand(program("stunnel", "stunnel", "/etc/stunnel/stunnel.conf"))
        .subcommand(program("haproxy", "HAProxy: `bind … ssl` in mode tcp", "/etc/haproxy/haproxy.cfg"))
        .subcommand(
            Command::new("stud").about("Import a command line of stud or hitch").arg(arguments).after_help(
                "Example:\n  courser import stud -f '[*]:443' -b '[127.0.0.1]:80' -n 4 --write-proxy site.pem",
            ),
        )
        .after_help(IMPORT_HELP)
}

const IMPORT_HELP: &str = "\
Standard error says what is different, with the line; comments in the output say it too.

Exit codes:
  0  the configuration does what the original did, but for differences that were named
  2  something is unsupported, and what depends on it is missing; or the file is invalid

Example:
  courser import hitch /etc/hitch/hitch.conf > courser.toml && courser check --config courser.toml";

fn completions() -> Command {
    Command::new("completions")
        .about("Print a shell completion script")
        .after_help("Example:\n  courser completions bash > /etc/bash_completion.d/courser")
        .arg(Arg::new("shell").required(true).value_parser(value_parser!(Shell)).help("Name of the shell"))
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_command_line_is_consistent() {
        super::command().debug_assert();
    }
}
