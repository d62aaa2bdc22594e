//! `targets`: which terminators are installed here, and how to install the others.

use courser_lab::selector;
use courser_lab::target::{self, Definition, Installed, Role, catalogue};
use courser_lab::to_record;
use courser_report::layout::{Page, Style, Tone};
use serde_json::{Value, json};

use crate::cli::TargetsArgs;
use crate::deliver::{print, style};
use crate::exit::{Ended, Failure};

/// A target, and what is installed of it or how to install it.
type Found = (&'static Definition, Result<Installed, String>);

/// Prints all that there are.
pub(crate) fn targets(args: &TargetsArgs) -> Result<Ended, Failure> {
    if let Some(name) = &args.show {
        selector::find(name).map_err(Failure::Usage)?;
        print(target::source(name).unwrap_or_default());
        return Ok(Ended::Well);
    }
    let found: Vec<Found> = catalogue().iter().map(|one| (one, one.installed())).collect();
    if args.json {
        print(&format!("{:#}\n", document(&found)));
    } else {
        print(&tables(&found, style()));
    }
    Ok(Ended::Well)
}

fn tables(found: &[Found], style: Style) -> String {
    let mut page = Page::new(style);
    let (chains, alone): (Vec<&Found>, Vec<&Found>) = found.iter().partition(|(one, _)| one.is_chain());
    let installed = alone.iter().filter_map(|(one, found)| Some((*one, found.as_ref().ok()?)));
    page.line(Tone::Heading, "Installed here");
    let head = ["name", "version", "TLS library", "presets"].map(str::to_owned).to_vec();
    let rows = installed.clone().map(|(one, found)| row(one, found));
    page.table(&std::iter::once(head).chain(rows).collect::<Vec<_>>());
    page.line(Tone::Plain, "");
    installed.for_each(|(one, _)| page.paragraph(Tone::Plain, &format!("{}: ", one.name), &one.note));
    missing(&mut page, &alone);
    let usable: Vec<&str> =
        chains.iter().filter(|(_, found)| found.is_ok()).map(|(one, _)| one.name.as_str()).collect();
    page.line(Tone::Plain, "");
    page.paragraph(Tone::Plain, "With a balancer behind: ", &usable.join(", "));
    page.finish()
}

fn missing(page: &mut Page, alone: &[&Found]) {
    let missing: Vec<(&str, &str)> = alone
        .iter()
        .filter_map(|(one, found)| Some((one.name.as_str(), found.as_ref().err()?.as_str())))
        .collect();
    if missing.is_empty() {
        return;
    }
    page.line(Tone::Plain, "");
    page.line(Tone::Heading, "Not installed");
    for (name, how) in missing {
        page.paragraph(Tone::Plain, &format!("{name}: "), how);
    }
}

fn row(one: &Definition, found: &Installed) -> Vec<String> {
    let or_dash = |text: &str| if text.is_empty() { "-".to_owned() } else { text.to_owned() };
    vec![
        one.name.clone(),
        or_dash(&found.version),
        or_dash(found.library.as_deref().unwrap_or_default()),
        or_dash(&presets(one).join(", ")),
    ]
}

/// The presets of a target: nothing can be tuned where nothing is started.
fn presets(one: &Definition) -> Vec<&'static str> {
    if one.role == Role::Direct { Vec::new() } else { vec!["stock", "tuned"] }
}

fn document(found: &[Found]) -> Value {
    let entry = |(one, found): &Found| {
        let has = found.as_ref().ok();
        json!({
            "name": one.name,
            "title": one.title,
            "note": one.note,
            "installed": has.is_some(),
            "install": found.as_ref().err(),
            "program": has.map(|has| has.program.display().to_string()).filter(|path| !path.is_empty()),
            "version": has.map(|has| &has.version).filter(|version| !version.is_empty()),
            "tls_library": has.and_then(|has| has.library.as_ref()),
            "presets": presets(one),
        })
    };
    json!({
        "format": "courser-targets",
        "version": 2,
        "tool": to_record::tool(),
        "targets": found.iter().map(entry).collect::<Vec<_>>(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_is_listed_with_how_to_install_it() {
        let (first, second) = (&catalogue()[0], &catalogue()[1]);
        let has =
            Installed { version: "7.1".into(), library: Some("OpenSSL 3".into()), ..Installed::default() };
        let found: [Found; 2] = [(first, Ok(has)), (second, Err("apt-get install it".into()))];
        let text = tables(&found, Style::default());
        let (installed, missing) = text.split_once("Not installed").unwrap();
        assert!(installed.contains("7.1") && installed.contains("OpenSSL 3"), "{text}");
        assert!(missing.contains(&format!("{}: apt-get install it", second.name)), "{text}");
        let document = document(&found);
        assert_eq!(document["targets"][0]["tls_library"], "OpenSSL 3");
        assert_eq!(document["targets"][1]["install"], "apt-get install it");
    }
}
