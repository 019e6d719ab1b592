//! The time lines as a Parquet file.

use std::io::Write;
use std::sync::Arc;

use parquet::basic::Compression;
use parquet::data_type::{ByteArray, ByteArrayType, DoubleType, Int32Type, Int64Type};
use parquet::errors::Result;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedColumnWriter, SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::parser::parse_message_type;
use record::Record;

use crate::rows::{COLUMNS, Row, rows, unit_name};

/// Of [`COLUMNS`], in their order.
const SCHEMA: &str = "message bursar {
    REQUIRED INT32 run (INTEGER(32, false));
    REQUIRED BYTE_ARRAY series (STRING);
    REQUIRED BYTE_ARRAY unit (STRING);
    OPTIONAL INT32 pid;
    OPTIONAL INT64 start_ticks (INTEGER(64, false));
    REQUIRED DOUBLE t_seconds;
    REQUIRED DOUBLE value;
    REQUIRED BYTE_ARRAY rung (STRING);
}";

/// The rows that are held in memory.
const GROUP_ROWS: usize = 1 << 16;

pub(crate) fn write(record: &Record, out: &mut (impl Write + Send)) -> Result<()> {
    let header = serde_json::to_string(&record.header).ok();
    let properties = WriterProperties::builder()
        .set_compression(Compression::SNAPPY)
        .set_key_value_metadata(Some(vec![KeyValue::new("bursar.header".into(), header)]))
        .build();
    let mut file = SerializedFileWriter::new(out, Arc::new(parse_message_type(SCHEMA)?), Arc::new(properties))?;
    let mut rows = rows(record).peekable();
    while rows.peek().is_some() {
        let group: Vec<Row> = rows.by_ref().take(GROUP_ROWS).collect();
        write_group(&group, file.next_row_group()?)?;
    }
    file.close().map(drop)
}

fn write_group<W: Write + Send>(rows: &[Row], mut group: SerializedRowGroupWriter<'_, W>) -> Result<()> {
    for name in COLUMNS {
        let Some(mut column) = group.next_column()? else { break };
        match name {
            "run" => {
                let runs: Vec<i32> = rows.iter().map(|row| row.run as i32).collect();
                column.typed::<Int32Type>().write_batch(&runs, None, None)?;
            }
            "pid" => {
                let pids: Vec<i32> = rows.iter().filter_map(|row| Some(row.series.process?.pid)).collect();
                column.typed::<Int32Type>().write_batch(&pids, Some(&there(rows)), None)?;
            }
            "start_ticks" => {
                let ticks = rows.iter().filter_map(|row| Some(row.series.process?.start_ticks as i64));
                column.typed::<Int64Type>().write_batch(&ticks.collect::<Vec<_>>(), Some(&there(rows)), None)?;
            }
            "t_seconds" => write_doubles(&mut column, rows, |row| row.t_seconds)?,
            "value" => write_doubles(&mut column, rows, |row| row.value)?,
            "series" => write_texts(&mut column, rows, |row| &row.series.name)?,
            "unit" => write_texts(&mut column, rows, |row| unit_name(row.series.unit))?,
            _ => write_texts(&mut column, rows, |row| &row.series.rung)?,
        }
        column.close()?;
    }
    group.close().map(drop)
}

/// Definition levels of the columns that only the series of a process have.
fn there(rows: &[Row]) -> Vec<i16> {
    rows.iter().map(|row| row.series.process.is_some().into()).collect()
}

fn write_doubles(column: &mut SerializedColumnWriter<'_>, rows: &[Row], value: fn(&Row) -> f64) -> Result<()> {
    let values: Vec<f64> = rows.iter().map(value).collect();
    column.typed::<DoubleType>().write_batch(&values, None, None).map(drop)
}

fn write_texts<'a>(
    column: &mut SerializedColumnWriter<'_>,
    rows: &[Row<'a>],
    text: fn(&Row<'a>) -> &'a str,
) -> Result<()> {
    let values: Vec<ByteArray> = rows.iter().map(|row| ByteArray::from(text(row))).collect();
    column.typed::<ByteArrayType>().write_batch(&values, None, None).map(drop)
}
