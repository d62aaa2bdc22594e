//! Arguments of `report`.

use std::path::PathBuf;

use clap::Args;

/// Arguments of `report`.
#[derive(Debug, Args)]
pub(crate) struct ReportArgs {
    /// Records of suites, as `run` writes them
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    /// Write a self-contained page (HTML) to this file
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Write Markdown to this file
    #[arg(long, value_name = "FILE")]
    pub(crate) markdown: Option<PathBuf>,
    /// Write figures as CSV to this file
    #[arg(long, value_name = "FILE")]
    pub(crate) csv: Option<PathBuf>,
    /// Write plots and flame graphs (SVG) to this folder
    #[arg(long, value_name = "FOLDER")]
    pub(crate) svg: Option<PathBuf>,
    /// Write a page for each record (NAME.html for NAME.json) and one over all of them (index.html) to this folder
    #[arg(long, value_name = "FOLDER")]
    pub(crate) index: Option<PathBuf>,
    /// Print every two targets of every case by processor time per connection: how far they differ, the minimum detectable
    /// difference, and of all of them how many are called different; with --json as JSON
    #[arg(long)]
    pub(crate) pairs: bool,
    /// Print the records as a JSON list instead of text
    #[arg(long)]
    pub(crate) json: bool,
}
