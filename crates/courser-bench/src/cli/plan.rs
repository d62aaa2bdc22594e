//! Arguments of `plan`.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use crate::units::duration;

pub(super) const PLAN_EXAMPLES: &str = "\
Examples:
  courser-bench plan 'cores for 5000 new/s, 20000 resumed/s, 4 KB, RSA-2048' --record model.json
  courser-bench plan '5k new/s, 3 requests per connection, TLS 1.2, at 60 %' --model model.json
  courser-bench plan 'what do 4 cores carry: 1 new, 4 resumed, 4 KB, RSA-2048' --model model.json";

/// Arguments of `plan`.
#[derive(Debug, Args)]
pub(crate) struct PlanArgs {
    /// Load: new/s and resumed/s, or a number of cores and the proportion of new to resumed; optionally requests per
    /// connection, response size, key, TLS version, and utilisation of a core (at 70 %)
    #[arg(value_name = "QUESTION")]
    pub(crate) question: String,
    /// Target that serves it
    #[arg(long, value_name = "NAME", default_value = "courser", conflicts_with = "model")]
    pub(crate) target: String,
    /// Answer from a stored model instead of measuring
    #[arg(long, value_name = "FILE")]
    pub(crate) model: Option<PathBuf>,
    /// Write the model to this file (JSON)
    #[arg(long, value_name = "FILE", conflicts_with = "model")]
    pub(crate) record: Option<PathBuf>,
    /// Length of each of about fifty runs per round: twenty-three mixes at two utilisations
    #[arg(long, value_name = "TIME", default_value = "1500ms", value_parser = duration)]
    pub(crate) time: Duration,
    /// Repetitions of each run
    #[arg(long, value_name = "COUNT", default_value_t = 2, value_parser = clap::value_parser!(u8).range(1..=50))]
    pub(crate) rounds: u8,
    /// Seed of the order of runs and of the validation mixes
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    pub(crate) seed: u64,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// Suppress progress output
    #[arg(short, long)]
    pub(crate) quiet: bool,
}
