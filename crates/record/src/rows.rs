//! A struct is a row: its fields go to the columns of their names, and come back from them.
//!
//! A field that has no column goes to the column `more`, so that a field which a later bursar adds to a type is kept by
//! this version of the tables, too.

use rusqlite::types::{Value as Sql, ValueRef};
use rusqlite::{Connection, Row, params_from_iter};
use serde::Serialize;
use serde_json::{Map, Value as Json};

use crate::guard::{self, Allowance};
use crate::schema;

/// A problem with a row.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RowError {
    #[error("{}", guard::sentence(.0))]
    Sqlite(#[from] rusqlite::Error),
    #[error("in table '{table}', {cause}")]
    Json { table: &'static str, cause: serde_json::Error },
    #[error("its table '{table}' has more rows than the file can hold")]
    MoreThanTheFile { table: &'static str },
}

/// A table's columns, and how to write and read its rows.
pub(crate) struct Table {
    name: &'static str,
    columns: Vec<(String, String)>,
    insert: String,
    select: String,
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

/// Removes the members of objects that are null: SQL's `json_extract` and the types read an absent one alike.
pub(crate) fn remove_nulls(value: &mut Json) {
    match value {
        Json::Object(members) => {
            members.retain(|_, member| !member.is_null());
            members.values_mut().for_each(remove_nulls);
        }
        Json::Array(items) => items.iter_mut().for_each(remove_nulls),
        _ => {}
    }
}

impl Table {
    /// Looks up the columns.
    pub(crate) fn of(database: &Connection, name: &'static str) -> rusqlite::Result<Table> {
        let own = schema::tables().get(name);
        let mut columns = Vec::new();
        database.pragma(None, "table_info", name, |row| {
            let column: String = row.get("name")?;
            // How a value is kept is ours to say, not the file's.
            let kind = own.and_then(|own| own.columns.get(&column)).cloned().unwrap_or_default();
            columns.push((column, kind));
            Ok(())
        })?;
        // Some are words of SQL.
        let names: Vec<String> = columns.iter().map(|(name, _): &(String, String)| format!("\"{name}\"")).collect();
        let marks = vec!["?"; columns.len()].join(",");
        let names = names.join(",");
        let insert = format!("INSERT OR REPLACE INTO {name} ({names}) VALUES ({marks})");
        let select = format!("SELECT {names} FROM {name} NOT INDEXED ORDER BY rowid");
        Ok(Table { name, columns, insert, select })
    }

    /// Whether the file has no such table.
    pub(crate) fn is_absent(&self) -> bool {
        self.columns.is_empty()
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

    /// The rows, in the order they were added, as long as the file can hold them.
    pub(crate) fn rows(&self, database: &Connection, allowance: &Allowance) -> Result<Vec<Fields>, RowError> {
        let mut statement = database.prepare(&self.select)?;
        let mut rows = statement.query([])?;
        let mut all = Vec::new();
        while let Some(row) = rows.next()? {
            let mut bytes = 0;
            for index in 0..self.columns.len() {
                bytes += match row.get_ref(index)? {
                    ValueRef::Text(value) | ValueRef::Blob(value) => value.len() as u64,
                    _ => 0,
                };
            }
            if !allowance.take_row(bytes) {
                return Err(RowError::MoreThanTheFile { table: self.name });
            }
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
        (ValueRef::Integer(value), "UINT") => (value as u64).into(),
        (ValueRef::Integer(value), _) => value.into(),
        (ValueRef::Real(value), _) => value.into(),
        (ValueRef::Text(text), "JSON") => serde_json::from_slice(text)?,
        (ValueRef::Text(text), _) => String::from_utf8_lossy(text).into(),
    })
}
