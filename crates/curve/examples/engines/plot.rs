//! Lines on logarithmic axes, as SVG.

/// One engine's line.
pub struct Line {
    pub name: String,
    pub points: Vec<(f64, f64)>,
}

const WIDTH: f64 = 760.0;
const HEIGHT: f64 = 380.0;
const LEFT: f64 = 60.0;
const RIGHT: f64 = 190.0;
const BOTTOM: f64 = 50.0;
const TOP: f64 = 20.0;
const COLORS: [&str; 5] = ["#9aa0a6", "#4e79a7", "#f28e2b", "#59a14f", "#b07aa1"];

/// The drawing; axes span whole powers of ten.
pub fn svg(lines: &[Line]) -> String {
    let all = || lines.iter().flat_map(|line| &line.points);
    let low = |of: fn(&(f64, f64)) -> f64| all().map(of).fold(f64::INFINITY, f64::min).log10().floor();
    let high = |of: fn(&(f64, f64)) -> f64| all().map(of).fold(0.0, f64::max).log10().ceil();
    let (x0, x1, y0, y1) = (low(|p| p.0), high(|p| p.0), low(|p| p.1), high(|p| p.1));
    let x = |value: f64| LEFT + (value.log10() - x0) / (x1 - x0) * (WIDTH - LEFT - RIGHT);
    let y = |value: f64| HEIGHT - BOTTOM - (value.log10() - y0) / (y1 - y0) * (HEIGHT - BOTTOM - TOP);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" font-family=\"sans-serif\" \
         font-size=\"12\">\n<rect width=\"{WIDTH}\" height=\"{HEIGHT}\" fill=\"white\"/>\n"
    );
    for power in x0 as i32..=x1 as i32 {
        let at = x(10f64.powi(power));
        svg += &format!("<path d=\"M{at:.1} {TOP}V{}\" stroke=\"#dddddd\"/>\n", HEIGHT - BOTTOM);
        svg +=
            &format!("<text x=\"{at:.1}\" y=\"{}\" text-anchor=\"middle\">1e{power}</text>\n", HEIGHT - BOTTOM + 18.0);
    }
    for power in y0 as i32..=y1 as i32 {
        let at = y(10f64.powi(power));
        svg += &format!("<path d=\"M{LEFT} {at:.1}H{}\" stroke=\"#dddddd\"/>\n", WIDTH - RIGHT);
        let text = if power < 0 {
            format!("{:.*}", -power as usize, 10f64.powi(power))
        } else {
            10f64.powi(power).to_string()
        };
        svg += &format!("<text x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">{text}</text>\n", LEFT - 6.0, at + 4.0);
    }
    svg += &format!(
        "<text x=\"{}\" y=\"{}\" text-anchor=\"middle\">references</text>\n",
        (LEFT + WIDTH - RIGHT) / 2.0,
        HEIGHT - 10.0
    );
    let middle = (TOP + HEIGHT - BOTTOM) / 2.0;
    svg += &format!(
        "<text x=\"16\" y=\"{middle}\" text-anchor=\"middle\" transform=\"rotate(-90 16 {middle})\">ns per reference</text>\n"
    );
    for (at, line) in lines.iter().enumerate() {
        let color = COLORS[at % COLORS.len()];
        let points: Vec<String> = line.points.iter().map(|p| format!("{:.1},{:.1}", x(p.0), y(p.1))).collect();
        svg += &format!(
            "<polyline points=\"{}\" fill=\"none\" stroke=\"{color}\" stroke-width=\"2\"/>\n",
            points.join(" ")
        );
        let legend = TOP + 18.0 * (at as f64 + 1.0);
        let left = WIDTH - RIGHT + 14.0;
        svg += &format!("<path d=\"M{left} {}h18\" stroke=\"{color}\" stroke-width=\"2\"/>\n", legend - 4.0);
        svg += &format!("<text x=\"{}\" y=\"{legend}\">{}</text>\n", left + 24.0, line.name);
    }
    svg + "</svg>\n"
}
