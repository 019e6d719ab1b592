//! Values of options, as people write them.

use std::net::SocketAddr;
use std::time::Duration;

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use compare::runs::Figure;
use curve::intermittent::Checkpoint;
use model::Bytes;
use provision::manage::Placement;
use session::tier::FastTier;

/// `90`, `90s`, `500ms`, `5m`; a bare number is seconds.
pub fn duration(text: &str) -> Result<Duration, String> {
    let parsed = match text.parse::<f64>() {
        Ok(seconds) => Duration::try_from_secs_f64(seconds).ok(),
        Err(_) => humantime::parse_duration(text).ok(),
    };
    parsed.filter(|d| !d.is_zero()).ok_or_else(|| format!("'{text}' is not a time; write 90s, 500ms or 5m"))
}

/// `--threads=8`, or the name of a number in the environment.
pub fn feature(text: &str) -> Result<(String, f64), String> {
    let number = |value: &str| value.trim().parse::<f64>().ok().filter(|number| number.is_finite());
    match text.rsplit_once('=') {
        Some((name, value)) => number(value).filter(|_| !name.is_empty()).map(|value| (name.to_string(), value)),
        None => std::env::var(text).ok().and_then(|value| number(&value)).map(|value| (text.to_string(), value)),
    }
    .ok_or_else(|| format!("'{text}' is no feature: write --threads=8, or the name of a variable that is a number"))
}

/// `5%` or `0.05`. Who writes `5` may mean 5 %: `None`.
fn fraction(text: &str) -> Option<f64> {
    match text.strip_suffix('%') {
        Some(percent) => percent.trim().parse::<f64>().map(|p| p / 100.0).ok(),
        None => text.parse().ok().filter(|share| *share <= 1.0),
    }
}

pub fn share(text: &str) -> Result<f64, String> {
    fraction(text)
        .filter(|v| (0.001..=10.0).contains(v))
        .ok_or_else(|| format!("'{text}' is not a slow-down; write 5% or 0.05 (0.1 % to 1000 %)"))
}

pub fn rate(text: &str) -> Result<f64, String> {
    let share = fraction(text).filter(|share| *share > 0.0 && *share <= 1.0);
    share.ok_or_else(|| format!("'{text}' is not a share; write 1% or 0.01"))
}

pub fn tolerance(text: &str) -> Result<f64, String> {
    let share = fraction(text).filter(|share| (0.0..=1.0).contains(share));
    share.ok_or_else(|| format!("'{text}' is not a share of the references; write 1% or 0.01"))
}

/// Figures that a check can compare, with what each is.
const FIGURES: [(&str, &str, Figure); 6] = [
    ("peak-charge", "The peak of the charge, page cache included", Figure::PeakCharge),
    ("heap", "The most heap", Figure::Heap),
    ("floor", "What cannot be reclaimed: must fit", Figure::Floor),
    ("app-maxrss", "The largest process", Figure::AppMaxRss),
    ("page-faults", "Page faults, minor and major", Figure::PageFaults),
    ("run-time", "Start to end", Figure::RunTime),
];

/// One of these figures.
pub fn figure() -> impl TypedValueParser<Value = Figure> {
    let names = FIGURES.map(|(name, what, _)| PossibleValue::new(name).help(what));
    PossibleValuesParser::new(names).try_map(|text| {
        let found = FIGURES.iter().find(|(name, ..)| *name == text);
        found.map(|(.., figure)| *figure).ok_or("no such figure")
    })
}

/// How much more is allowed, as a share of what was.
pub fn growth(text: &str) -> Result<f64, String> {
    let share = fraction(text).filter(|share| (0.0..=10.0).contains(share));
    share.ok_or_else(|| format!("'{text}' is not a growth; write 5% or 0.05 (at most 1000 %)"))
}

pub fn checkpoint(text: &str) -> Result<Checkpoint, String> {
    let numbers: Option<Vec<u32>> = text.split(',').map(|number| number.trim().parse().ok()).collect();
    match numbers.as_deref() {
        Some(&[first, step, most]) if first > 0 && most >= first => Ok(Checkpoint { first, step, most }),
        _ => Err(format!("'{text}' is not FIRST,STEP,MOST; write 10,5,20")),
    }
}

/// `hdf5=libhdf5*.so*`; the library is given all of them in one variable, whose marks names cannot have.
pub fn component(text: &str) -> Result<(String, String), String> {
    let parts = text.split_once('=').filter(|(name, glob)| !name.is_empty() && !glob.is_empty() && !text.contains(';'));
    match parts {
        Some((name, _)) if name == "application" || model::lines::RESERVED.contains(&name) => {
            Err(format!("'{name}' has a meaning of its own; choose another name"))
        }
        Some((name, glob)) => Ok((name.into(), glob.into())),
        None => Err(format!("'{text}' is no component; write hdf5='libhdf5*.so*'")),
    }
}

pub fn some_bytes(text: &str) -> Result<Bytes, String> {
    let bytes = text.parse::<Bytes>().map_err(|error| error.to_string())?;
    if bytes.0 > 0 { Ok(bytes) } else { Err("0 is no size for a pool; write 512M or 16G".to_string()) }
}

/// No program runs in less.
const LEAST_LIMIT: Bytes = Bytes(64 << 10);

/// Who writes `5` may mean 5M; `0` and `4K` are meant.
pub fn limit(text: &str) -> Result<Bytes, String> {
    let bytes = text.parse::<Bytes>().map_err(|error| error.to_string())?;
    let lacks_unit = text.parse::<u64>().is_ok_and(|number| number > 0) && bytes < LEAST_LIMIT;
    if lacks_unit {
        Err(format!("no program runs in {bytes}; write the unit, as in 512M or 1.5GiB"))
    } else {
        Ok(bytes)
    }
}

pub fn placement(text: &str) -> Result<Placement, String> {
    match text {
        "interleave" => Ok(Placement::Interleave),
        number => number
            .parse()
            .map(Placement::Node)
            .map_err(|_| format!("'{text}' is no node; write its number, such as 0, or interleave")),
    }
}

pub fn fast_tier(text: &str) -> Result<FastTier, String> {
    text.parse().map_err(|()| format!("'{text}' is no fast memory; write ram, or the number of a NUMA node, such as 0"))
}

/// Octal, as for chmod.
pub fn mode(text: &str) -> Result<u32, String> {
    let mode = u32::from_str_radix(text, 8).ok().filter(|mode| *mode <= 0o777);
    mode.ok_or_else(|| format!("'{text}' is not the mode of a socket; write 0660 or 0666"))
}

pub fn page(text: &str) -> Result<u64, String> {
    let Bytes(bytes) = text.parse::<Bytes>().map_err(|error| error.to_string())?;
    if bytes > 0 { Ok(bytes) } else { Err("a page has at least one byte; write 4K or 2M".to_string()) }
}

pub fn ghz(text: &str) -> Result<f64, String> {
    let clock = text.parse().ok().filter(|ghz| (0.1..=100.0).contains(ghz));
    clock.ok_or_else(|| format!("'{text}' is not a clock in GHz; write 2.2"))
}

/// `127.0.0.1:19676`, `[::1]:19676`, `localhost:19676`.
pub fn address(text: &str) -> Result<SocketAddr, String> {
    let named = || {
        let (host, port) = text.rsplit_once(':')?;
        Some(SocketAddr::new(linux::names::host(host)?, port.parse().ok()?))
    };
    text.parse()
        .ok()
        .or_else(named)
        .ok_or_else(|| format!("'{text}' is no address to listen on; write 127.0.0.1:19676"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn portions_are_between_nothing_and_all() {
        assert_eq!((tolerance("0"), tolerance("1%"), rate("100%")), (Ok(0.0), Ok(0.01), Ok(1.0)));
        assert_eq!((growth("0"), growth("5%"), growth("1001%").is_err()), (Ok(0.0), Ok(0.05), true));
        assert!(rate("0").is_err() && rate("101%").is_err() && tolerance("-1%").is_err() && tolerance("nan").is_err());
        assert_eq!((page("4K"), page("2MiB")), (Ok(4096), Ok(2 << 20)));
        assert!(page("0").unwrap_err().contains("write 4K"));
    }

    #[test]
    fn a_component_has_a_name_of_its_own_and_a_glob() {
        assert_eq!(component("hdf5=libhdf5*.so*"), Ok(("hdf5".into(), "libhdf5*.so*".into())));
        for wrong in ["hdf5", "=lib*", "hdf5=", "a=b;c=d"] {
            assert!(component(wrong).unwrap_err().contains("write hdf5="), "{wrong}");
        }
        assert!(component("application=lib*").unwrap_err().contains("another name"));
    }

    #[test]
    fn a_pool_has_a_size_a_place_and_a_mode() {
        assert_eq!((some_bytes("1G"), mode("0660")), (Ok(Bytes(1 << 30)), Ok(0o660)));
        assert_eq!((placement("1"), placement("interleave")), (Ok(Placement::Node(1)), Ok(Placement::Interleave)));
        assert!(some_bytes("0").unwrap_err().contains("write 512M") && some_bytes("much").is_err());
        assert!(placement("-1").unwrap_err().contains("interleave") && mode("0999").unwrap_err().contains("0660"));
    }

    #[test]
    fn fast_memory_is_ram_or_a_node() {
        assert_eq!((fast_tier("ram"), fast_tier("1")), (Ok(FastTier::Ram), Ok(FastTier::Node(1))));
        assert!(fast_tier("zram").unwrap_err().contains("write ram"));
    }

    #[test]
    fn an_address_has_a_port() {
        assert_eq!(address("[::1]:80").unwrap().to_string(), "[::1]:80");
        for wrong in ["", "127.0.0.1", "19676", "127.0.0.1:99999"] {
            assert!(address(wrong).unwrap_err().contains("write 127.0.0.1:19676"), "{wrong}");
        }
    }

    #[test]
    fn a_limit_without_its_unit_is_refused() {
        for (text, bytes) in [("100K", 100 << 10), ("4K", 4 << 10), ("0", 0), ("1048576", 1 << 20)] {
            assert_eq!(limit(text), Ok(Bytes(bytes)));
        }
        for wrong in ["5", "512"] {
            assert!(limit(wrong).unwrap_err().contains("write the unit"), "{wrong}");
        }
    }

    #[test]
    fn checkpoints_are_three_numbers() {
        assert_eq!(checkpoint("10,5,20"), Ok(Checkpoint { first: 10, step: 5, most: 20 }));
        for wrong in ["10", "10,5", "0,5,20", "30,5,20", "a,b,c"] {
            assert!(checkpoint(wrong).unwrap_err().contains("write 10,5,20"), "{wrong}");
        }
    }

    #[test]
    fn times_and_shares_are_read_as_people_write_them() {
        assert_eq!(duration("90"), Ok(Duration::from_secs(90)));
        assert_eq!(duration("500ms"), Ok(Duration::from_millis(500)));
        assert_eq!(duration("5m"), Ok(Duration::from_secs(300)));
        assert_eq!(share("5%"), Ok(0.05));
        assert_eq!(share("0.05"), Ok(0.05));
        for wrong in ["", "soon", "-3s", "0"] {
            assert!(duration(wrong).unwrap_err().contains("write 90s"), "{wrong}");
        }
        assert_eq!(share("250%"), Ok(2.5));
        for wrong in ["", "five", "5", "-5%", "0", "nan"] {
            assert!(share(wrong).unwrap_err().contains("write 5%"), "{wrong}");
        }
    }

    #[test]
    fn a_clock_is_in_ghz() {
        assert_eq!(ghz("2.2"), Ok(2.2));
        for wrong in ["2200000000", "0", "nan", "fast"] {
            assert!(ghz(wrong).unwrap_err().contains("write 2.2"), "{wrong}");
        }
    }
}
