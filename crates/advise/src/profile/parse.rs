//! Profiles read from text.

use std::collections::{BTreeMap, HashMap};

use model::Bytes;

use super::{Mapping, Object, Profile, ProfiledRange, Program, Section};
use crate::wrong::{Malformed, Wrong, shown, words};

/// A result, or the column of an error and its message.
type Read<T> = Result<T, (usize, String)>;

/// A word and its column.
type Word<'a> = (usize, &'a str);

enum Line {
    Program(Program),
    Command(String),
    Range(ProfiledRange),
}

/// Ranges of the current program so far, by mapping and start: (end, line).
type Ranges = HashMap<Mapping, BTreeMap<u64, (u64, usize)>>;

pub(super) fn profile(text: &str) -> Result<Profile, Malformed> {
    let mut profile = Profile::default();
    let mut wrong = Vec::new();
    let mut ranges = Ranges::new();
    let lines = text.lines().enumerate().map(|(index, line)| (index + 1, line));
    let mut lines = lines.filter(|(_, line)| !line.trim_start().is_empty() && !line.trim_start().starts_with('#'));
    let (number, first) = lines.next().unwrap_or((1, ""));
    if let Err((column, what)) = header(first) {
        // In a file that is not a profile, the other lines have no errors to report.
        return Err(Malformed(vec![Wrong { line: number, column, what }]));
    }
    for (line, text) in lines {
        let read = self::line(text).and_then(|read| add(read, &mut profile, &mut ranges, line));
        wrong.extend(read.err().map(|(column, what)| Wrong { line, column, what }));
    }
    if wrong.is_empty() { Ok(profile) } else { Err(Malformed(wrong)) }
}

fn header(line: &str) -> Read<()> {
    match words(line).map(|(_, word)| word).collect::<Vec<_>>()[..] {
        ["bursar", "profile", "1"] => Ok(()),
        ["bursar", "profile", version] => {
            Err((1, format!("a profile of version {} is not known here; this bursar reads version 1", shown(version))))
        }
        _ => Err((1, "this is no profile: the first line of one is 'bursar profile 1'".into())),
    }
}

fn add(line: Line, profile: &mut Profile, ranges: &mut Ranges, number: usize) -> Read<()> {
    let program = profile.programs.last_mut();
    match (line, program) {
        (Line::Program(program), _) => {
            let again = |known: &&Program| known.name == program.name && known.build_id == program.build_id;
            if profile.programs.iter().find(again).is_some() {
                return Err((
                    1,
                    format!("the program {} is there a second time; put its ranges together", program.name),
                ));
            }
            ranges.clear();
            profile.programs.push(program);
        }
        (_, None) => {
            return Err((1, "no program is named before this; add 'program NAME BUILD-ID', or - for no id".into()));
        }
        (Line::Command(command), Some(program)) => program.command = Some(command),
        (Line::Range(range), Some(program)) => {
            let to = range.to.unwrap_or(u64::MAX);
            let of_mapping = ranges.entry(range.mapping.clone()).or_default();
            let before = of_mapping.range(..to).next_back();
            if let Some((_, (_, other))) = before.filter(|(_, (end, _))| *end > range.from) {
                return Err((1, format!("this range overlaps that of line {other}; ranges of one mapping lie apart")));
            }
            of_mapping.insert(range.from, (to, number));
            program.ranges.push(range);
        }
    }
    Ok(())
}

fn line(text: &str) -> Read<Line> {
    let mut rest = words(text);
    let end = text.chars().count() + 1;
    let (column, first) = rest.next().unwrap_or((1, ""));
    let mut next = |what: &str| rest.next().ok_or_else(|| (end, format!("{what} is missing at the end of the line")));
    match first {
        "program" => {
            let name = unescaped(next("the program's name")?)?;
            let build_id = build_id(next("the program's build-id, or -,")?)?;
            match rest.next() {
                Some((column, word)) => Err((column, format!("{} is one word too many", shown(word)))),
                None => Ok(Line::Program(Program { name, build_id, ..Program::default() })),
            }
        }
        "command" => Ok(Line::Command(text.trim()["command".len()..].trim_start().to_string())),
        "heap" | "stack" | "mmap" | "bss" | "data" | "code" => {
            let (which, ordinal) = (next("which one, or -,")?, next("its ordinal, or -,")?);
            let mapping = mapping(first, which, ordinal)?;
            let (from, to) = extent(next("the range, such as 0..64M,")?)?;
            let mut range = ProfiledRange::of(mapping, from, to);
            let mut named = Vec::new();
            for (column, word) in rest {
                let name = attribute(&mut range, (column, word))?;
                if named.contains(&name) {
                    return Err((column, format!("{name} is there a second time")));
                }
                named.push(name);
            }
            if named.iter().all(|name| *name == "sure") {
                return Err((end, "nothing is said of this range; add huge=, eager= or touched=".into()));
            }
            Ok(Line::Range(range))
        }
        _ => Err((
            column,
            format!("{} begins no line; write program, command, heap, mmap, bss, data, stack or code", shown(first)),
        )),
    }
}

pub(super) fn mapping(kind: &str, which: Word, ordinal: Word) -> Read<Mapping> {
    let none = |(column, word): Word, of: &str| match word {
        "-" => Ok(()),
        _ => Err((column, format!("{} {of}; write -", shown(word)))),
    };
    let section = match kind {
        "mmap" => {
            let class = match which {
                (_, "*") => None,
                (column, word) => Some(word.parse().ok().filter(|class| *class < 64).ok_or_else(|| {
                    (
                        column,
                        format!(
                            "{} is no size class; write the binary logarithm of the size, such as 27, or *",
                            shown(word)
                        ),
                    )
                })?),
            };
            let ordinal = match ordinal {
                (_, "*") => None,
                (column, word) => Some(word.parse().map_err(|_| {
                    (column, format!("{} is no ordinal; write a number from 0, or * for all of the class", shown(word)))
                })?),
            };
            return Ok(Mapping::Mmap { class, ordinal });
        }
        "bss" => Section::Bss,
        "data" => Section::Data,
        "code" => Section::Code,
        "heap" | "stack" => {
            none(which, &format!("names no {kind}: there is one alone"))?;
            none(ordinal, &format!("is no ordinal of the {kind}: there is one alone"))?;
            return Ok(if kind == "heap" { Mapping::Heap } else { Mapping::Stack });
        }
        _ => return Err((1, format!("{} is no kind of mapping", shown(kind)))),
    };
    none(ordinal, &format!("is no ordinal of {kind}: an object has one alone"))?;
    Ok(Mapping::Object { section, object: object(which)? })
}

fn object((column, word): Word) -> Read<Option<Object>> {
    if word == "-" {
        return Ok(None);
    }
    let wrong =
        || (column, format!("{} is no object; write name:build-id, name:- or - for the executable", shown(word)));
    let (name, id) = word.rsplit_once(':').filter(|(name, _)| !name.is_empty()).ok_or_else(wrong)?;
    let id_column = column + name.chars().count() + 1;
    Ok(Some(Object { name: unescaped((column, name))?, build_id: build_id((id_column, id))? }))
}

fn build_id((column, word): Word) -> Read<Option<String>> {
    let is_hex = !word.is_empty() && word.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    match word {
        "-" => Ok(None),
        _ if is_hex => Ok(Some(word.to_string())),
        _ => Err((column, format!("{} is no build-id; write its hexadecimal digits in lower case, or -", shown(word)))),
    }
}

fn extent((column, word): Word) -> Read<(u64, Option<u64>)> {
    let (from, to) = word
        .split_once("..")
        .ok_or_else(|| (column, format!("{} is no range; write 0..64M or 0..end", shown(word))))?;
    let size =
        |column, text: &str| text.parse::<Bytes>().map(|bytes| bytes.0).map_err(|error| (column, error.to_string()));
    let first = size(column, from)?;
    let to_column = column + from.chars().count() + 2;
    let last = if to == "end" { None } else { Some(size(to_column, to)?) };
    match last {
        Some(last) if last <= first => {
            Err((to_column, "the range ends before it begins; write 0..64M or 0..end".into()))
        }
        _ => Ok((first, last)),
    }
}

fn attribute(range: &mut ProfiledRange, (column, word): Word) -> Read<&'static str> {
    let (name, value) = word.split_once('=').unwrap_or((word, ""));
    let value = (column + name.chars().count() + 1, value);
    let ns = |(column, value): Word| {
        let wrong = |_| (column, format!("{} is no time; write nanoseconds, a whole number", shown(value)));
        value.parse::<u64>().map_err(wrong)
    };
    let share = |(column, value): Word| {
        let percent = value.strip_suffix('%').and_then(|number| number.parse::<f64>().ok());
        let share = percent.map(hundredths).filter(|share| (0.0..=1.0).contains(share));
        share.ok_or_else(|| (column, format!("{} is no share; write 0% to 100%", shown(value))))
    };
    match name {
        "huge" => ns(value).map(|ns| range.huge_ns = Some(ns)).map(|()| "huge"),
        "eager" => ns(value).map(|ns| range.eager_ns_per_mib = Some(ns)).map(|()| "eager"),
        "touched" => share(value).map(|share| range.touched = Some(share)).map(|()| "touched"),
        "sure" => share(value).map(|share| range.confidence = share).map(|()| "sure"),
        _ => Err((column, format!("{} is not known; write huge=, eager=, touched= or sure=", shown(word)))),
    }
}

/// A percentage as a share, at the precision at which shares are printed.
fn hundredths(percent: f64) -> f64 {
    (percent * 100.0).round() / 1e4
}

/// Decodes `\ooo` to the byte.
fn unescaped((column, word): Word) -> Read<String> {
    let mut bytes = Vec::new();
    let mut rest = word.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        let octal = after.get(..3).filter(|_| *first == b'\\').and_then(|digits| std::str::from_utf8(digits).ok());
        match octal.map(|digits| u8::from_str_radix(digits, 8)) {
            Some(Ok(byte)) => {
                bytes.push(byte);
                rest = &after[3..];
            }
            _ if *first == b'\\' => break,
            _ => {
                bytes.push(*first);
                rest = after;
            }
        }
    }
    let wrong =
        || (column, format!("{} is no name: \\ is followed by three octal digits, as \\040 for a blank", shown(word)));
    String::from_utf8(bytes).ok().filter(|_| rest.is_empty()).ok_or_else(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A profile with every feature of the format.
    const ALL: &str = "\
        # made by hand\n\
        bursar profile 1\n\
        \n\
        program xz 5f3e0c\n\
        command xz -9 -k linux.tar\n\
        mmap 27 0 0..192M huge=2100000 touched=100% sure=90% eager=40000\n\
        mmap * * 0..end touched=50%\n\
        heap - - 0..64M huge=0 touched=12.5% sure=70%\n\
        heap - - 64M..end touched=0%\n\
        stack - - 0..8M huge=1\n\
        bss libfoo.so.1:77ab - 16M..24M huge=90000\n\
        data - - 0..2M eager=1\n\
        code my\\040lib.so:- - 4096..8193 huge=5\n\
        program sh -\n";

    fn wrong(lines: &str) -> Vec<(usize, usize, String)> {
        let Malformed(wrong) = Profile::parse(&format!("bursar profile 1\nprogram xz -\n{lines}")).unwrap_err();
        wrong.into_iter().map(|wrong| (wrong.line, wrong.column, wrong.what)).collect()
    }

    #[test]
    fn every_feature_is_read_and_printed_unchanged() {
        let profile = Profile::parse(ALL).unwrap();
        let xz = &profile.programs[0];
        assert_eq!((xz.name.as_str(), xz.build_id.as_deref()), ("xz", Some("5f3e0c")));
        assert_eq!(xz.command.as_deref(), Some("xz -9 -k linux.tar"));
        let dictionary = ProfiledRange {
            huge_ns: Some(2_100_000),
            eager_ns_per_mib: Some(40_000),
            touched: Some(1.0),
            confidence: 0.9,
            ..ProfiledRange::of(Mapping::Mmap { class: Some(27), ordinal: Some(0) }, 0, Some(192 << 20))
        };
        assert_eq!(xz.ranges[0], dictionary);
        let Mapping::Object { object: Some(object), .. } = &xz.ranges[7].mapping else { panic!("{:?}", xz.ranges[7]) };
        assert_eq!((object.name.as_str(), &object.build_id), ("my lib.so", &None));
        assert_eq!(profile.programs[1], Program { name: "sh".into(), ..Program::default() });
        let printed = profile.to_string();
        assert_eq!(Profile::parse(&printed).unwrap(), profile, "{printed}");
    }

    #[test]
    fn errors_have_their_place_and_a_correction() {
        let found = wrong("heap - - 0..64M huge=2.1ms\n\nheap - - 64M..64M huge=1\nhaep - - 0..1 huge=1\n");
        let places: Vec<_> = found.iter().map(|(line, column, _)| (*line, *column)).collect();
        assert_eq!(places, [(3, 22), (5, 15), (6, 1)]);
        assert!(found[0].2.contains("'2.1ms' is no time") && found[0].2.contains("nanoseconds"));
        assert!(found[1].2.contains("ends before it begins"));
        assert!(found[2].2.contains("'haep' begins no line") && found[2].2.contains("heap"));
    }

    #[test]
    fn errors_point_to_the_wrong_word() {
        for (line, column, what) in [
            ("mmap 27 0 0..64M", 17, "nothing is said of this range"),
            ("mmap 27 0 0..64M sure=9%", 25, "nothing is said of this range"),
            ("mmap 27 0", 10, "the range, such as 0..64M, is missing"),
            ("mmap", 5, "which one, or -, is missing"),
            ("mmap 64 0 0..1 huge=1", 6, "'64' is no size class"),
            ("mmap 27 -1 0..1 huge=1", 9, "'-1' is no ordinal"),
            ("mmap 27 0 64M huge=1", 11, "'64M' is no range"),
            ("mmap 27 0 0..lots huge=1", 14, "'lots' is not a size"),
            ("mmap 27 0 x..1 huge=1", 11, "'x' is not a size"),
            ("mmap 27 0 0..1 touched=101%", 24, "'101%' is no share"),
            ("mmap 27 0 0..1 touched=nan%", 24, "'nan%' is no share"),
            ("mmap 27 0 0..1 huge=-1", 21, "'-1' is no time"),
            ("mmap 27 0 0..1 huge=1 huge=2", 23, "huge is there a second time"),
            ("mmap 27 0 0..1 hug=1", 16, "'hug=1' is not known"),
            ("heap 0 - 0..1 huge=1", 6, "names no heap"),
            ("stack - 0 0..1 huge=1", 9, "no ordinal of the stack"),
            ("bss libm.so - 0..1 huge=1", 5, "'libm.so' is no object"),
            ("bss libm.so:XYZ - 0..1 huge=1", 13, "'XYZ' is no build-id"),
            ("bss a\\9:- - 0..1 huge=1", 5, "is no name"),
            ("program xz - more", 14, "'more' is one word too many"),
            ("program xz -", 1, "a second time"),
            ("program sh", 11, "build-id, or -, is missing"),
            ("ööö", 1, "begins no line"),
        ] {
            let found = wrong(line);
            assert_eq!((found[0].0, found[0].1), (3, column), "{line}: {}", found[0].2);
            assert!(found[0].2.contains(what), "{line}: {}", found[0].2);
        }
    }

    #[test]
    fn ranges_of_one_mapping_must_not_overlap() {
        assert!(Profile::parse("bursar profile 1\nprogram a -\nheap - - 4M..8M huge=1\nheap - - 0..4M huge=1\nheap - - 8M..end huge=1\n").is_ok());
        for (second, first) in [
            ("0..end", "4M..8M"),
            ("0..5M", "4M..8M"),
            ("5M..6M", "4M..8M"),
            ("7M..9M", "4M..8M"),
            ("9M..10M", "8M..end"),
        ] {
            let found = wrong(&format!("heap - - {first} huge=1\nheap - - {second} huge=1"));
            assert_eq!(found[0].0, 4);
            assert!(found[0].2.contains("overlaps that of line 3"), "{}", found[0].2);
        }
        // In two programs they are two heaps.
        assert!(
            Profile::parse("bursar profile 1\nprogram a -\nheap - - 0..1M huge=1\nprogram b -\nheap - - 0..1M huge=1")
                .is_ok()
        );
    }

    #[test]
    fn a_file_that_is_no_profile_has_one_error() {
        for (text, what) in [
            ("", "this is no profile"),
            ("huge,heap,41534456\nhuge,mmap,41534456\n", "the first line of one is 'bursar profile 1'"),
            ("bursar profile 2\nwhatever\n", "version '2' is not known here"),
        ] {
            let Malformed(wrong) = Profile::parse(text).unwrap_err();
            assert_eq!(wrong.len(), 1);
            assert!(wrong[0].what.contains(what), "{}", wrong[0].what);
        }
        let Malformed(wrong) = Profile::parse("bursar profile 1\nheap - - 0..1M huge=1\n").unwrap_err();
        assert!(wrong[0].to_string().starts_with("line 2, column 1: no program is named before this"));
    }
}
