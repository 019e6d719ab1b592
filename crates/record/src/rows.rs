//! A struct is a row: its fields go to the columns of their names, and come back from them.
//!
//! A field that has no column goes to the column `more`, so that a field which a later bursar adds to a type is kept by
//! this version of the tables, too.

use rusqlite::types::{Value as Sql, ValueRef};
use rusqlite::{Connection, Row, params_from_iter};
use serde::Serialize;
use serde_json::{Map, Value as Json};

/// A problem with a row.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RowError {
    #[error(transparent)]
    Sqlite(#[from] rusqlite::Error),
    #[error("in table '{table}', {cause}")]
    Json { table: &'static str, cause: serde_json::Error },
}

/// A table's columns, and how to write and read its rows.
pub(crate) struct Table {
    name: &'static str,
    columns: Vec<(String, String)>,
    insert: String,
}

/// The fields of a struct by name.
pub(crate) type Fields = Map<String, Json>;

/// The fields of a struct.
pub(crate) fn fields(value: &impl Serialize) -> Fields {
    match serde_json::to_value(value) {
        Ok(Json::Object(fields)) => fields,
        _ => Fields::new(),
    }
}

impl Table {
    /// Looks up the columns.
    pub(crate) fn of(database: &Connection, name: &'static str) -> rusqlite::Result<Table> {
        let mut columns = Vec::new();
        database.pragma(None, "table_info", name, |row| {
            columns.push((row.get("name")?, row.get("type")?));
            Ok(())
        })?;
        // Some are words of SQL.
        let names: Vec<String> = columns.iter().map(|(name, _): &(String, String)| format!("\"{name}\"")).collect();
        let marks = vec!["?"; columns.len()].join(",");
        let insert = format!("INSERT OR REPLACE INTO {name} ({}) VALUES ({marks})", names.join(","));
        Ok(Table { name, columns, insert })
    }

    /// Adds a row.
    pub(crate) fn insert(&self, database: &Connection, mut fields: Fields) -> rusqlite::Result<()> {
        let mut row: Vec<Sql> =
            self.columns.iter().map(|(name, kind)| to_sql(fields.remove(name).unwrap_or_default(), kind)).collect();
        fields.retain(|_, value| !value.is_null());
        if let Some(more) = self.columns.iter().position(|(name, _)| name == "more").filter(|_| !fields.is_empty()) {
            row[more] = Sql::Text(Json::Object(fields).to_string());
        }
        database.prepare_cached(&self.insert)?.execute(params_from_iter(row))?;
        Ok(())
    }

    /// The rows for which `condition` holds, in the order they were added.
    pub(crate) fn rows(&self, database: &Connection, condition: &str) -> Result<Vec<Fields>, RowError> {
        let sql = format!("SELECT * FROM {} WHERE {condition} ORDER BY rowid", self.name);
        let mut statement = database.prepare_cached(&sql)?;
        let mut rows = statement.query([])?;
        let mut all = Vec::new();
        while let Some(row) = rows.next()? {
            all.push(self.fields_of(row)?);
        }
        Ok(all)
    }

    fn fields_of(&self, row: &Row) -> Result<Fields, RowError> {
        let mut fields = Fields::new();
        for (index, (name, kind)) in self.columns.iter().enumerate() {
            let value = from_sql(row.get_ref(index)?, kind).map_err(|cause| self.json_error(cause))?;
            match value {
                Json::Object(more) if name == "more" => fields.extend(more),
                value => drop(fields.insert(name.clone(), value)),
            }
        }
        Ok(fields)
    }

    fn json_error(&self, cause: serde_json::Error) -> RowError {
        RowError::Json { table: self.name, cause }
    }
}

fn to_sql(value: Json, kind: &str) -> Sql {
    match value {
        Json::Null => Sql::Null,
        value if kind == "JSON" => Sql::Text(value.to_string()),
        Json::Bool(value) => Sql::Integer(value.into()),
        Json::String(value) => Sql::Text(value),
        Json::Number(number) => match (number.as_u64(), number.as_i64()) {
            (Some(value), _) => Sql::Integer(value as i64),
            (None, Some(value)) => Sql::Integer(value),
            (None, None) => number.as_f64().map_or(Sql::Null, Sql::Real),
        },
        value => Sql::Text(value.to_string()),
    }
}

fn from_sql(value: ValueRef, kind: &str) -> serde_json::Result<Json> {
    Ok(match (value, kind) {
        (ValueRef::Null | ValueRef::Blob(_), _) => Json::Null,
        (ValueRef::Integer(value), "BOOLEAN") => Json::Bool(value != 0),
        (ValueRef::Integer(value), "UNSIGNED INTEGER") => (value as u64).into(),
        (ValueRef::Integer(value), _) => value.into(),
        (ValueRef::Real(value), _) => value.into(),
        (ValueRef::Text(text), "JSON") => serde_json::from_slice(text)?,
        (ValueRef::Text(text), _) => String::from_utf8_lossy(text).into(),
    })
}
