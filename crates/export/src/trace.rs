//! The curve of a trace as CSV.

use std::io::{self, Write};

use model::{CurveFigures, TraceCurve};

use crate::csv::quoted;

/// Writes a line per point: whose curve it is of (a tenant's, or of the window that begins then; neither: the whole's), size,
/// miss ratio.
///
/// # Errors
/// If `out` cannot be written.
pub fn trace_csv(curve: &TraceCurve, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "tenant,start_seconds,size,miss_ratio")?;
    let mut write = |tenant: &str, start: &str, figures: &CurveFigures| {
        let line = |point: &model::CurvePoint| format!("{tenant},{start},{},{}\n", point.size, point.miss_ratio);
        out.write_all(figures.points.iter().map(line).collect::<String>().as_bytes())
    };
    write("", "", &curve.whole)?;
    curve.tenants.iter().try_for_each(|tenant| write(&quoted(&tenant.tenant), "", &tenant.figures))?;
    curve.windows.iter().try_for_each(|window| write("", &window.start_seconds.to_string(), &window.figures))?;
    out.flush()
}
