//! `system-check`: system settings of this machine beside those of published experiments.

use courser_lab::{to_record, tuning};
use courser_record::lab::Tuning;
use courser_report::figure::UNKNOWN;
use courser_report::layout::{Page, Style, Tone};
use serde_json::json;

use crate::cli::SystemCheckArgs;
use crate::deliver::{print, style};
use crate::exit::{Ended, Failure};

/// Prints a table or JSON.
pub(crate) fn system_check(args: &SystemCheckArgs) -> Result<Ended, Failure> {
    let rows = tuning::tuning();
    if args.json {
        let document = json!({
            "format": "courser-tuning",
            "version": 1,
            "tool": to_record::tool(),
            "machine": to_record::machine(),
            "settings": rows,
        });
        print(&format!("{document:#}\n"));
    } else {
        print(&page(&rows, style()));
    }
    Ok(Ended::Well)
}

fn page(rows: &[Tuning], style: Style) -> String {
    let mut page = Page::new(style);
    page.heading("Settings that published experiments changed");
    page.table(&table(rows.iter().filter(|row| row.published.is_some()), true));
    page.heading("What else a measurement depends on");
    page.table(&table(rows.iter().filter(|row| row.published.is_none()), false));
    page.heading("What differs here");
    for row in rows.iter().filter(|row| row.differs) {
        page.paragraph(Tone::Warning, &format!("  {}  ", row.name), &row.why);
        if let Some(command) = &row.command {
            page.line(Tone::Plain, &format!("      {command}"));
        }
    }
    page.line(Tone::Plain, "");
    page.paragraph(Tone::Plain, "", &summary(rows));
    page.finish()
}

fn table<'a>(rows: impl Iterator<Item = &'a Tuning>, published: bool) -> Vec<Vec<String>> {
    let head: &[&str] = if published { &["", "here", "published", ""] } else { &["", "here"] };
    let mut table = vec![head.iter().map(|cell| (*cell).to_owned()).collect()];
    for row in rows {
        let known = |value: &Option<String>| value.clone().unwrap_or_else(|| UNKNOWN.to_owned());
        let mut cells = vec![row.name.clone(), known(&row.here)];
        if published {
            let word = if row.differs { "differs" } else { "" };
            cells.extend([known(&row.published), word.to_owned()]);
        }
        table.push(cells);
    }
    table
}

/// How many differ, how many cannot be read, and that nothing was done about it.
fn summary(rows: &[Tuning]) -> String {
    let differ = rows.iter().filter(|row| row.differs).count();
    let hidden = rows.iter().filter(|row| row.here.is_none() && row.published.is_some()).count();
    let contained = rows.iter().any(|row| row.name == "container" && row.here.is_some());
    let subject = if differ == 1 { "setting differs" } else { "settings differ" };
    let mut text = format!("{differ} {subject} from what was published. Nothing was changed.");
    if hidden > 0 {
        text +=
            &format!(" {hidden} cannot be read here; where a container hides them, read them on its host.");
    }
    if contained {
        text += " This is marked as a container: what is set here may hold for its network alone, and the machine's \
                 own settings are to be read and changed on its host.";
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(name: &str, here: Option<&str>, published: Option<&str>, differs: bool) -> Tuning {
        Tuning {
            name: name.into(),
            here: here.map(Into::into),
            published: published.map(Into::into),
            source: Some("Bernat 2011".into()),
            differs,
            why: "it matters".into(),
            command: Some(format!("set {name}")),
        }
    }

    #[test]
    fn what_differs_comes_with_its_reason_and_its_command() {
        let rows = [
            row("backlog", Some("4096"), Some("131072 or more"), true),
            row("ticks", Some("250"), Some("250"), false),
            row("hidden", None, Some("1"), false),
            row("driver", Some("eth0 virtio_net"), None, false),
        ];
        let text = page(&rows, Style::default());
        assert!(text.contains("backlog  4096  131072 or more  differs\n"), "{text}");
        assert!(text.contains("  backlog  it matters\n      set backlog\n"), "{text}");
        assert!(!text.contains("set ticks") && text.contains("  hidden      -  "), "{text}");
        assert!(
            text.contains(
                "1 setting differs from what was published. Nothing was changed. 1 cannot be read here"
            ),
            "{text}"
        );
        assert!(!text.contains("container: what"), "{text}");
    }
}
