//! Colours of plots: drawn with stand-ins, which style sheets turn into those of a light or a dark page. Attributes of
//! SVG give way to style sheets (SVG 2, section 6.6), so a plot without one has the stand-ins: those of a light page.

use plotters::style::RGBColor;

/// Text.
pub(super) const INK: RGBColor = RGBColor(0x1A, 0x1C, 0x1E);
/// Names of axes, ticks.
pub(super) const FAINT: RGBColor = RGBColor(0x5A, 0x60, 0x68);
/// Lines of the grid.
pub(super) const LINE: RGBColor = RGBColor(0xD5, 0xD9, 0xDE);
/// What is offered, limits: dashed.
pub(super) const MARK: RGBColor = RGBColor(0x77, 0x77, 0x77);

/// Okabe and Ito's colours, which people see apart who see few, without their yellow, which a white page swallows. As many as a
/// suite has targets at most.
pub(super) const SERIES: [RGBColor; 8] = [
    RGBColor(0x00, 0x72, 0xB2),
    RGBColor(0xD5, 0x5E, 0x00),
    RGBColor(0x00, 0x9E, 0x73),
    RGBColor(0xCC, 0x79, 0xA7),
    RGBColor(0xE6, 0x9F, 0x00),
    RGBColor(0x56, 0xB4, 0xE9),
    RGBColor(0x7A, 0x5C, 0x3E),
    RGBColor(0x6B, 0x7A, 0x00),
];

/// The same on a dark page.
const DARK: [&str; 8] =
    ["#4AA8E0", "#FF8A3D", "#2FCB9B", "#E79CC6", "#F2B73F", "#8FD0FA", "#C2A383", "#B5C44A"];

/// Lines of different targets have different dashes, so that they are told apart without colours.
const DASHES: [&str; 8] = ["none", "7 3", "2 3", "9 3 2 3", "4 4", "12 4", "1 4", "6 2 2 2 2 2"];

/// The colour of the series of this number.
pub(super) fn series(index: usize) -> RGBColor {
    SERIES[index % SERIES.len()]
}

/// The rules for plots within a page that sets `--ink`, `--faint` and `--line`.
pub(crate) fn rules() -> String {
    let mut rules = String::new();
    let names = [
        (INK, "ink".to_owned()),
        (FAINT, "faint".to_owned()),
        (LINE, "line".to_owned()),
        (MARK, "mark".to_owned()),
    ];
    let series = SERIES.iter().enumerate().map(|(index, colour)| (*colour, format!("s{index}")));
    for (colour, name) in names.into_iter().chain(series) {
        let stand_in = hex(colour);
        rules.push_str(&format!(
            "svg [fill=\"{stand_in}\"]{{fill:var(--{name})}}svg [stroke=\"{stand_in}\"]{{stroke:var(--{name})}}\n"
        ));
    }
    for (colour, dashes) in SERIES.iter().zip(DASHES).skip(1) {
        rules.push_str(&format!("svg polyline[stroke=\"{}\"]{{stroke-dasharray:{dashes}}}\n", hex(*colour)));
    }
    let mark = hex(MARK);
    rules.push_str(&format!("svg polyline[stroke=\"{mark}\"]{{stroke-dasharray:5 3}}\n"));
    rules.push_str("svg polyline[fill=\"none\"]{fill:none}svg text{font-family:system-ui,sans-serif}\n");
    rules
}

/// The values of the series, light (and on paper) or dark.
pub(crate) fn values(is_dark: bool) -> String {
    let colour = |(index, colour): (usize, &RGBColor)| match is_dark {
        true => format!("--s{index}:{};", DARK[index]),
        false => format!("--s{index}:{};", hex(*colour)),
    };
    let mark = if is_dark { "#9AA0A6" } else { "#777777" };
    SERIES.iter().enumerate().map(colour).collect::<String>() + &format!("--mark:{mark};")
}

/// The style of a plot that stands alone.
pub(super) fn alone() -> String {
    format!(
        "svg{{--ink:#1A1C1E;--faint:#5A6068;--line:#D5D9DE;background:#FFF;{}}}\n@media(prefers-color-scheme:dark){{svg{{\
         --ink:#E6E8EA;--faint:#A0A8B0;--line:#363C43;background:#14171A;{}}}}}\n{}",
        values(false),
        values(true),
        rules()
    )
}

fn hex(colour: RGBColor) -> String {
    format!("#{:02X}{:02X}{:02X}", colour.0, colour.1, colour.2)
}
