//! The fields of a line, also of one whose name holds delimiters.

use std::borrow::Cow;

use super::columns::{Form, Header};
use super::values::{count, seconds, size, time};
use crate::accounting::ended;

/// A line's fields by their columns.
#[derive(Clone, Debug)]
pub struct Fields<'a> {
    header: &'a Header,
    fields: Vec<Cow<'a, str>>,
}

/// More fields than this are no line of sacct's.
const MOST_FIELDS: usize = 400;

impl<'a> Fields<'a> {
    pub fn new(header: &'a Header, fields: Vec<Cow<'a, str>>) -> Fields<'a> {
        Fields { header, fields }
    }

    /// Empty where the column is not there.
    pub fn get(&self, name: &str) -> &str {
        let at = self.header.names.iter().position(|known| known == name);
        at.and_then(|at| self.fields.get(at)).map_or("", |field| field.trim())
    }
}

/// Whether a field may stand in a column.
pub fn has_form(form: Form, text: &str) -> bool {
    let text = text.trim();
    match form {
        Form::JobId => {
            text.starts_with(|c: char| c.is_ascii_digit())
                && text.chars().all(|c| c.is_ascii_alphanumeric() || "_.+-[]%,:".contains(c))
        }
        Form::State => ended(text).is_some(),
        Form::Elapsed => text.is_empty() || seconds(text).is_some(),
        Form::Size => size(text).is_ok(),
        Form::Count => count(text).is_ok(),
        Form::Time => matches!(text, "" | "Unknown" | "None" | "N/A") || time(text).is_some(),
        Form::Tres => text.is_empty() || text.split(',').all(|part| part.contains('=')),
        Form::Word => !text.contains('\n'),
        Form::Text => true,
    }
}

/// Whether a part is one of a list of TRES.
fn is_of_tres(part: &str) -> bool {
    let names = ["cpu=", "mem=", "node=", "billing=", "energy=", "vmem=", "pages=", "fs/", "gres/", "license/"];
    names.iter().any(|name| part.starts_with(name)) && part.contains('=')
}

/// Puts more parts than columns together: texts and lists take the surplus. `None`: in no way, or in more than one.
pub fn align(forms: &[Form], parts: &[String], delimiter: &str) -> Option<Vec<String>> {
    let (columns, count) = (forms.len(), parts.len());
    if count < columns || count > MOST_FIELDS {
        return None;
    }
    let surplus = count - columns;
    let fits = |column: usize, from: usize, to: usize| match forms[column] {
        // Where commas are delimiters, a part of a list is none of a text.
        Form::Text => delimiter != "," || !parts[from..to].iter().any(|part| is_of_tres(part)),
        Form::Tres if delimiter == "," => {
            parts[from..to].iter().all(|part| part.contains('=')) || (to == from + 1 && parts[from].trim().is_empty())
        }
        form => to == from + 1 && has_form(form, &parts[from]),
    };
    // ahead[c][p]: the columns before c can take exactly the parts before p; behind: those from c on, the parts from p on.
    let mut ahead = vec![vec![false; count + 1]; columns + 1];
    let mut behind = ahead.clone();
    ahead[0][0] = true;
    behind[columns][count] = true;
    for column in 0..columns {
        for from in (column..=column + surplus).filter(|from| ahead[column][*from]).collect::<Vec<_>>() {
            let last = (column + 1 + surplus).min(count);
            for (to, can_end) in ahead[column + 1].iter_mut().enumerate().take(last + 1).skip(from + 1) {
                *can_end |= fits(column, from, to);
            }
        }
    }
    for column in (0..columns).rev() {
        for from in column..=column + surplus {
            behind[column][from] = (from + 1..=(column + 1 + surplus).min(count))
                .any(|to| behind[column + 1][to] && fits(column, from, to));
        }
    }
    if !behind[0][0] {
        return None;
    }
    let mut fields = Vec::with_capacity(columns);
    let mut from = 0;
    for column in 0..columns {
        let ways =
            |from: usize| (from + 1..=(column + 1 + surplus).min(count)).filter(move |to| fits(column, from, *to));
        if forms[column] != Form::Text {
            let starts = (column..=column + surplus).filter(|from| ahead[column][*from]);
            let spans =
                starts.flat_map(|from| ways(from).filter(|to| behind[column + 1][*to]).map(move |to| (from, to)));
            if spans.take(2).count() != 1 {
                return None;
            }
        }
        // Of texts side by side the first, the job's name, takes what it can.
        let to = ways(from).filter(|to| behind[column + 1][*to]).max()?;
        fields.push(parts[from..to].join(delimiter).trim().to_string());
        from = to;
    }
    Some(fields)
}

#[cfg(test)]
mod tests {
    use super::*;

    const FORMS: [Form; 4] = [Form::JobId, Form::Text, Form::State, Form::Size];

    fn aligned(line: &str) -> Option<Vec<String>> {
        let parts: Vec<String> = line.split('|').map(str::to_string).collect();
        align(&FORMS, &parts, "|")
    }

    #[test]
    fn a_name_takes_the_delimiters_that_stand_in_it() {
        assert_eq!(aligned("7|a|b|c|COMPLETED|5K").unwrap(), ["7", "a|b|c", "COMPLETED", "5K"]);
        assert_eq!(aligned("7||COMPLETED|5K").unwrap(), ["7", "", "COMPLETED", "5K"]);
        assert_eq!(aligned("7|COMPLETED|x|COMPLETED|5K").unwrap(), ["7", "COMPLETED|x", "COMPLETED", "5K"]);
    }

    #[test]
    fn what_could_be_read_in_two_ways_is_not_read() {
        let forms = [Form::JobId, Form::Text, Form::State, Form::Text];
        let parts: Vec<String> = "7|a|FAILED|COMPLETED|b".split('|').map(str::to_string).collect();
        assert_eq!(align(&forms, &parts, "|"), None);
        assert_eq!(aligned("7|a|b|5K|COMPLETED"), None);
    }

    #[test]
    fn lists_with_commas_are_put_together_where_commas_are_delimiters() {
        let forms = [Form::JobId, Form::Text, Form::Tres, Form::Count, Form::Tres];
        let parts: Vec<String> =
            "7,a,cpu=1,mem=5M,2,,".trim_end_matches(',').split(',').chain([""]).map(str::to_string).collect();
        assert_eq!(align(&forms, &parts, ",").unwrap(), ["7", "a", "cpu=1,mem=5M", "2", ""]);
    }
}
