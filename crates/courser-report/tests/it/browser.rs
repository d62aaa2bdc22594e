//! The page in a browser: at the width of a phone and of a screen, light and dark. The browser's own word counts: what it
//! logs, how wide it lays out, which colours it takes.

use std::path::Path;
use std::process::{Command, Output};
use std::sync::mpsc;
use std::time::Duration;

use courser_report::html;
use courser_testkit::folder::Folder;
use courser_testkit::tools::require;

use crate::labs::{capacity, primitives};

/// A browser that takes longer than this has hung.
const PATIENCE: Duration = Duration::from_secs(120);

/// Puts the page into a frame of a width, and asks how it is laid out. The frame is of the same origin, so that it may
/// be asked; the page's own policy forbids scripts in it, and so the one that asks is outside.
const PROBE: &str = r#"<!doctype html><meta charset="utf-8"><body><iframe id="page" style="border:0;width:WIDTHpx;height:900px"></iframe>
<script>
const frame = document.getElementById('page');
frame.onload = () => {
  const page = frame.contentDocument, root = page.documentElement, style = frame.contentWindow.getComputedStyle(page.body);
  const texts = [...page.querySelectorAll('svg text')].map(text => {
    const plot = text.ownerSVGElement;
    return parseFloat(text.getAttribute('font-size')) * plot.getBoundingClientRect().width / plot.viewBox.baseVal.width;
  });
  const wide = [...page.querySelectorAll('body *')].filter(part => {
    const box = part.getBoundingClientRect();
    return box.right > WIDTH + 1 && !part.closest('.scroll') && !part.closest('pre') && !part.closest('svg');
  });
  document.body.dataset.found = JSON.stringify({
    width: root.scrollWidth, background: style.backgroundColor, charts: page.querySelectorAll('figure svg').length,
    least: Math.min(...texts), wide: wide.slice(0, 3).map(part => part.outerHTML.slice(0, 80)),
    answer: Math.max(...[...page.querySelectorAll('.sentences')].slice(0, 1).map(part => part.getBoundingClientRect().bottom)),
    requests: frame.contentWindow.performance.getEntriesByType('resource').filter(one => !one.name.startsWith('data:')).length,
  });
};
frame.srcdoc = PAGE;
</script>"#;

#[test]
fn the_page_fits_a_phone_and_a_screen_light_and_dark() {
    let Some(chromium) = require("chromium") else { return };
    let (folder, page) = (Folder::new(), html::render(&[capacity(), primitives()]));
    for width in [360, 1400] {
        let probe = PROBE.replace("WIDTH", &width.to_string()).replace("PAGE", &literal(&page));
        let file = folder.write(&format!("{width}.html"), probe);
        for (scheme, background) in [(1, "rgb(255, 255, 255)"), (0, "rgb(20, 23, 26)")] {
            let out = browse(&chromium, &folder, &file, width, scheme);
            let said = String::from_utf8_lossy(&out.stderr);
            let logged: Vec<&str> = said.lines().filter(|line| line.contains("CONSOLE")).collect();
            assert!(logged.is_empty(), "{width} {scheme}: {logged:?}");
            let found = found(&String::from_utf8_lossy(&out.stdout), &said);
            let place = format!("at {width} pixels, scheme {scheme}: {found}");
            assert!(found.contains(&format!("\"width\":{width},")), "it scrolls sideways {place}");
            assert!(found.contains("\"wide\":[]"), "{place}");
            assert!(found.contains(&format!("\"background\":\"{background}\"")), "{place}");
            assert!(found.contains("\"requests\":0"), "{place}");
            let least: f64 = number(&found, "least");
            assert!(least >= 11.0, "text of plots is too small {place}");
            assert!(number(&found, "charts") > 10.0, "{place}");
        }
    }
}

/// Table, plot and sentences stand in the first screen of a phone and of a laptop.
#[test]
fn the_answer_stands_on_the_first_screen() {
    let Some(chromium) = require("chromium") else { return };
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../record/capacity.json");
    let lab = courser_record::Lab::from_json(std::fs::read(file).unwrap()).unwrap();
    let (folder, page) = (Folder::new(), html::render(&[lab]));
    for (width, height) in [(390, 844.0), (1280, 800.0)] {
        let probe = PROBE.replace("WIDTH", &width.to_string()).replace("PAGE", &literal(&page));
        let file = folder.write(&format!("{width}.html"), probe);
        let out = browse(&chromium, &folder, &file, width, 1);
        let found = found(&String::from_utf8_lossy(&out.stdout), &String::from_utf8_lossy(&out.stderr));
        let bottom = number(&found, "answer");
        assert!(bottom > 300.0 && bottom < height, "the sentences end at {bottom} of {height}: {found}");
    }
}

/// Console lines and the probe's answer.
fn browse(chromium: &Path, folder: &Folder, file: &Path, width: u32, scheme: u32) -> Output {
    let mut command = Command::new(chromium);
    command
        .args([
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-background-networking",
            "--disable-dev-shm-usage",
        ])
        .args(["--enable-logging=stderr", "--v=0", "--no-first-run", "--hide-scrollbars", "--dump-dom"])
        .arg(format!("--user-data-dir={}", folder.join(&format!("profile-{width}-{scheme}")).display()))
        .arg(format!("--blink-settings=preferredColorScheme={scheme}"))
        .arg(format!("--window-size={},1000", width.max(500)))
        .arg(format!("file://{}", file.display()));
    let (told, answer) = mpsc::channel();
    std::thread::spawn(move || told.send(command.output()));
    answer.recv_timeout(PATIENCE).expect("the browser answers").expect("the browser starts")
}

/// The page as a script's text, without what would end the script.
fn literal(page: &str) -> String {
    let escape = |char: char| match char {
        '\\' => "\\\\".to_owned(),
        '`' => "\\`".to_owned(),
        '$' => "\\$".to_owned(),
        '<' => "\\x3c".to_owned(),
        other => other.to_string(),
    };
    format!("`{}`", page.chars().map(escape).collect::<String>())
}

fn found(dom: &str, said: &str) -> String {
    let start = dom.find("data-found=\"").unwrap_or_else(|| panic!("the page did not load: {said}"));
    let rest = &dom[start + "data-found=\"".len()..];
    rest[..rest.find('"').unwrap()].replace("&quot;", "\"")
}

fn number(found: &str, name: &str) -> f64 {
    let rest = &found[found.find(&format!("\"{name}\":")).unwrap() + name.len() + 3..];
    rest[..rest.find([',', '}']).unwrap()].parse().unwrap()
}
