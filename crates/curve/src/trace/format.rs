//! The formats, by name.

use std::fmt;
use std::path::Path;
use std::str::FromStr;

use super::layout::Layout;

/// A trace's format.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Format {
    /// Recognised by its contents.
    Auto,
    /// Text in a published layout.
    Layout(Layout),
    /// Text, a reference per line.
    Csv(Columns),
    /// libCacheSim's oracleGeneral.
    OracleGeneral,
    /// VMware's vscsi, version 1 or 2.
    Vscsi,
    /// valgrind's lackey with `--trace-mem=yes`.
    Lackey,
}

/// The columns of a line of text. Unspecified ones are found by the usual names in the first line; a text of one column
/// needs none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Columns {
    /// The item: a number, or any text.
    pub key: Option<Column>,
    /// Its size in bytes.
    pub bytes: Option<Column>,
    /// Time of the reference.
    pub time: Option<Column>,
    /// Who made the reference.
    pub tenant: Option<Column>,
}

/// A column of a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Column {
    /// Column number from 1; the text has no line of names.
    Number(usize),
    /// Its name in the first line; case does not matter.
    Name(String),
}

impl Format {
    /// The format of binary records and logs by the file's name. `None` for text, which may have any layout.
    pub fn of_name(path: &Path) -> Option<Format> {
        let name = path.file_name()?.to_string_lossy().to_ascii_lowercase();
        let parts: Vec<&str> = name.split('.').skip(1).collect();
        parts.iter().rev().find_map(|part| match *part {
            "oraclegeneral" => Some(Format::OracleGeneral),
            "vscsi" => Some(Format::Vscsi),
            "lackey" => Some(Format::Lackey),
            _ => None,
        })
    }

    /// Whether it is, or may be, text.
    pub fn may_be_text(&self) -> bool {
        !matches!(self, Format::Vscsi | Format::OracleGeneral)
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Format::Auto => "auto",
            Format::Layout(layout) => layout.name(),
            Format::Csv(_) => "csv",
            Format::OracleGeneral => "oracle-general",
            Format::Vscsi => "vscsi",
            Format::Lackey => "lackey",
        })
    }
}

impl FromStr for Format {
    type Err = String;

    fn from_str(text: &str) -> Result<Format, String> {
        if let Some(layout) = Layout::ALL.into_iter().find(|layout| layout.name() == text) {
            return Ok(Format::Layout(layout));
        }
        match text {
            "auto" => Ok(Format::Auto),
            "csv" => Ok(Format::Csv(Columns::default())),
            "oracle-general" => Ok(Format::OracleGeneral),
            "vscsi" => Ok(Format::Vscsi),
            "lackey" => Ok(Format::Lackey),
            _ => Err(format!(
                "'{text}' is not a trace format; it is one of auto, csv, oracle-general, vscsi, lackey, {}",
                Layout::ALL.map(Layout::name).join(", ")
            )),
        }
    }
}

impl FromStr for Column {
    type Err = String;

    fn from_str(text: &str) -> Result<Column, String> {
        match text.parse::<usize>() {
            Ok(0) => Err("columns are counted from 1".to_string()),
            Ok(number) => Ok(Column::Number(number)),
            Err(_) if text.is_empty() => Err("a column has a name, or a number from 1".to_string()),
            Err(_) => Ok(Column::Name(text.to_string())),
        }
    }
}
