//! What is drawn on: pixels, text, marks, and axes over values.

use courser_stats::number::index;
use plotters::chart::{ChartBuilder, ChartContext};
use plotters::coord::Shift;
use plotters::coord::types::RangedCoordf64;
use plotters::prelude::{
    Cartesian2d, Circle, DrawingArea, IntoDrawingArea, PathElement, Polygon, Rectangle, SVGBackend, Text,
};
use plotters::style::text_anchor::{HPos, Pos, VPos};
use plotters::style::{Color, IntoTextStyle, RGBColor, ShapeStyle, TextStyle};

use super::theme::{FAINT, INK, LINE};
use crate::layout::harmless;

/// Width of a plot. Text of [`TEXT`] in it is over 11 pixels high on a phone of 360.
pub(super) const WIDTH: u32 = 420;
/// Size of text as the library counts it: whole numbers, 1.24 times what it writes into the SVG.
const TEXT: u32 = 18;
/// About what a character of it takes in width.
const CHARACTER: f64 = 7.7;

/// A string takes whatever is drawn; the library's errors are those of files.
const NEVER: &str = "a string takes what is drawn";

pub(super) type Point = (i32, i32);

/// Where a text is in relation to its point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AxisSide {
    Left,
    Right,
}

/// A sheet of a size.
pub(super) struct Canvas<'a> {
    area: DrawingArea<SVGBackend<'a>, Shift>,
}

/// Draws on a sheet of this height, and gives the markup inside of the `svg` element.
pub(super) fn draw(height: u32, drawing: impl FnOnce(&Canvas<'_>)) -> String {
    let mut text = String::new();
    {
        let canvas = Canvas { area: SVGBackend::with_string(&mut text, (WIDTH, height)).into_drawing_area() };
        drawing(&canvas);
        canvas.area.present().expect(NEVER);
    }
    let inside = text.split_once('>').map_or("", |(_, inside)| inside).trim_end().trim_end_matches("</svg>");
    // What is the same everywhere is in the style sheet. Text of records cannot look like this: its quotes are escaped.
    inside
        .replace(" opacity=\"1\"", "")
        .replace(" font-family=\"sans-serif\"", "")
        .replace(" \"/>", "\"/>")
        .replace('\n', "")
}

/// How wide a text is, about.
pub(super) fn width(text: &str) -> i32 {
    rounded(CHARACTER * f64::from(u32::try_from(text.chars().count()).unwrap_or(u32::MAX)))
}

/// A text that fits, its end cut off where it does not.
pub(super) fn fitted(text: &str, room: i32) -> String {
    let most = usize::try_from(rounded(f64::from(room.max(0)) / CHARACTER)).unwrap_or(0);
    if text.chars().count() <= most {
        return text.to_owned();
    }
    text.chars().take(most.saturating_sub(1)).chain(['…']).collect()
}

/// To the nearest pixel.
pub(super) fn rounded(value: f64) -> i32 {
    #[expect(clippy::cast_possible_truncation, reason = "clamped to what a sheet has")]
    let pixel = value.clamp(-10_000.0, 10_000.0).round() as i32;
    pixel
}

impl<'a> Canvas<'a> {
    pub(super) fn text(&self, at: Point, side: AxisSide, colour: RGBColor, text: &str) {
        let across = match side {
            AxisSide::Left => HPos::Left,
            AxisSide::Right => HPos::Right,
        };
        let style = font(colour).pos(Pos::new(across, VPos::Center));
        self.area.draw(&Text::new(harmless(text), at, style)).expect(NEVER);
    }

    pub(super) fn line(&self, points: Vec<Point>, colour: RGBColor, thickness: u32) {
        self.area.draw(&PathElement::new(points, colour.stroke_width(thickness))).expect(NEVER);
    }

    pub(super) fn bar(&self, from: Point, to: Point, colour: RGBColor, opacity: f64) {
        self.area.draw(&Rectangle::new([from, to], colour.mix(opacity).filled())).expect(NEVER);
    }

    /// The mark of a series: each has another shape.
    pub(super) fn mark(&self, series: usize, (x, y): Point) {
        let colour = super::theme::series(series);
        let (full, thin) =
            (colour.filled(), ShapeStyle { color: colour.to_rgba(), filled: false, stroke_width: 2 });
        let polygon = |points: &[Point]| {
            let points: Vec<Point> = points.iter().map(|(dx, dy)| (x + dx, y + dy)).collect();
            self.area.draw(&Polygon::new(points, full)).expect(NEVER);
        };
        match series % 8 {
            0 => self.area.draw(&Circle::new((x, y), 4, full)).expect(NEVER),
            1 => polygon(&[(-4, -4), (4, -4), (4, 4), (-4, 4)]),
            2 => polygon(&[(0, -5), (5, 4), (-5, 4)]),
            3 => polygon(&[(0, -6), (6, 0), (0, 6), (-6, 0)]),
            4 => self.area.draw(&Circle::new((x, y), 4, thin)).expect(NEVER),
            5 => polygon(&[(0, 5), (5, -4), (-5, -4)]),
            6 => {
                self.line(vec![(x - 4, y - 4), (x + 4, y + 4)], colour, 2);
                self.line(vec![(x - 4, y + 4), (x + 4, y - 4)], colour, 2);
            }
            _ => {
                self.line(vec![(x - 5, y), (x + 5, y)], colour, 2);
                self.line(vec![(x, y - 5), (x, y + 5)], colour, 2);
            }
        }
    }

    /// Axes between `top` and `bottom`, with lines at their ticks.
    pub(super) fn axes(&self, top: u32, bottom: u32, x: &Scale, y: &Scale) -> Axes<'a> {
        let part = self.area.clone().shrink((0, top), (WIDTH, bottom - top));
        let mut chart = ChartBuilder::on(&part)
            .margin_right(28)
            .margin_top(8)
            .x_label_area_size(24)
            .y_label_area_size(62)
            .build_cartesian_2d(x.low..x.high, y.low..y.high)
            .expect(NEVER);
        chart
            .configure_mesh()
            .disable_x_mesh()
            .light_line_style(LINE.mix(0.0))
            .bold_line_style(LINE)
            .axis_style(FAINT)
            .label_style(font(FAINT))
            .x_labels(x.ticks)
            .y_labels(y.ticks)
            .x_label_formatter(&|value: &f64| (x.label)(*value))
            .y_label_formatter(&|value: &f64| (y.label)(*value))
            .draw()
            .expect(NEVER);
        Axes { chart }
    }

    /// What each series is called, two in a row; gives nothing back but takes [`legend_height`].
    pub(super) fn legend(&self, top: i32, names: &[(usize, String)]) {
        let columns = legend_columns(names);
        let each = (sheet_width() - 20) / columns;
        for (index, (series, name)) in names.iter().enumerate() {
            let index = i32::try_from(index).unwrap_or(0);
            let (x, y) = (10 + index % columns * each, top + 10 + index / columns * 20);
            self.line(vec![(x, y), (x + 26, y)], super::theme::series(*series), 2);
            self.mark(*series, (x + 13, y));
            self.text((x + 34, y), AxisSide::Left, INK, &fitted(name, each - 38));
        }
    }
}

/// The width as the coordinates of pixels have it.
pub(super) fn sheet_width() -> i32 {
    i32::try_from(WIDTH).expect("a few hundred pixels")
}

fn legend_columns(names: &[(usize, String)]) -> i32 {
    let widest = names.iter().map(|(_, name)| width(name) + 44).max().unwrap_or(0);
    if widest * 3 <= sheet_width() {
        3
    } else if widest * 2 <= sheet_width() {
        2
    } else {
        1
    }
}

/// How high a legend is.
pub(super) fn legend_height(names: &[(usize, String)]) -> u32 {
    let columns = usize::try_from(legend_columns(names)).unwrap_or(1);
    u32::try_from(names.len().div_ceil(columns) * 20 + 4).unwrap_or(0)
}

fn font(colour: RGBColor) -> TextStyle<'static> {
    let style = ("sans-serif", TEXT).into_text_style(&(WIDTH, WIDTH));
    TextStyle { color: colour.to_backend_color(), ..style }
}

/// What an axis shows.
pub(super) struct Scale {
    pub(super) low: f64,
    pub(super) high: f64,
    pub(super) ticks: usize,
    pub(super) label: Box<dyn Fn(f64) -> String>,
}

impl Scale {
    /// From zero to a little above the highest.
    pub(super) fn from_zero(
        values: impl Iterator<Item = f64>,
        label: impl Fn(f64) -> String + 'static,
    ) -> Self {
        let highest = values.filter(|value| value.is_finite()).fold(0.0, f64::max);
        let high = if highest > 0.0 { highest * 1.06 } else { 1.0 };
        Self { low: 0.0, high, ticks: 6, label: Box::new(label) }
    }

    /// Whole powers of ten around the values; coordinates are decimal logarithms.
    pub(super) fn decades(
        values: impl Iterator<Item = f64>,
        label: impl Fn(f64) -> String + 'static,
    ) -> Self {
        let logs: Vec<f64> =
            values.filter(|value| *value > 0.0 && value.is_finite()).map(f64::log10).collect();
        let low = logs.iter().copied().fold(f64::INFINITY, f64::min).floor();
        let high = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max).ceil();
        let (low, high) = if low.is_finite() { (low, high.max(low + 1.0)) } else { (0.0, 1.0) };
        let text = move |log: f64| {
            if (log - log.round()).abs() < 1e-6 { label(10_f64.powf(log)) } else { String::new() }
        };
        let ticks = index(high - low) + 1;
        Self { low, high, ticks, label: Box::new(text) }
    }
}

/// Axes that were drawn: where a value is.
pub(super) struct Axes<'a> {
    chart: ChartContext<'a, SVGBackend<'a>, Cartesian2d<RangedCoordf64, RangedCoordf64>>,
}

impl Axes<'_> {
    pub(super) fn at(&self, x: f64, y: f64) -> Point {
        self.chart.backend_coord(&(x, y))
    }
}
