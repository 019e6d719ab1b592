//! The formats, by name.

use std::fmt;
use std::path::Path;
use std::str::FromStr;

/// A trace's format.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Format {
    /// Text, a reference per line.
    Csv(Columns),
    /// libCacheSim's oracleGeneral.
    OracleGeneral,
    /// VMware's vscsi, version 1 or 2.
    Vscsi,
    /// valgrind's lackey with `--trace-mem=yes`.
    Lackey,
}

/// Where in a line of text what stands. What is not said is found by the usual names in the first line; a text of one column
/// needs none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Columns {
    /// What is referenced: a number, or any text.
    pub key: Option<Column>,
    /// Its bytes.
    pub bytes: Option<Column>,
    /// When, in seconds.
    pub time: Option<Column>,
    /// By whom.
    pub tenant: Option<Column>,
}

/// A column of a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Column {
    /// From 1; there is no line of names.
    Number(usize),
    /// Its name in the first line, upper and lower case alike.
    Name(String),
}

impl Format {
    /// What a file's name says.
    pub fn of_name(path: &Path) -> Option<Format> {
        let name = path.file_name()?.to_string_lossy().to_ascii_lowercase();
        let parts: Vec<&str> = name.split('.').skip(1).collect();
        parts.iter().rev().find_map(|part| match *part {
            "csv" | "tsv" | "txt" => Some(Format::Csv(Columns::default())),
            "oraclegeneral" => Some(Format::OracleGeneral),
            "vscsi" => Some(Format::Vscsi),
            "lackey" => Some(Format::Lackey),
            _ => None,
        })
    }

    /// Whether what is referenced is an address with bytes behind it, and can be cut into pages.
    pub fn has_addresses(&self) -> bool {
        matches!(self, Format::Vscsi | Format::Lackey)
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
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
        match text {
            "csv" => Ok(Format::Csv(Columns::default())),
            "oracle-general" => Ok(Format::OracleGeneral),
            "vscsi" => Ok(Format::Vscsi),
            "lackey" => Ok(Format::Lackey),
            _ => Err(format!("'{text}' is not a trace format; it is one of csv, oracle-general, vscsi, lackey")),
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
