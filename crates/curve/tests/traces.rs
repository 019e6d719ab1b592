//! Every format, plain and compressed; and invalid input.

use std::io::{self, Cursor, Read, Write};

use curve::trace::{Column, Columns, Format, Place, Record, Trace, TraceError};

const LACKEY: &[u8] = include_bytes!("data/six-pages.lackey");
const REQUESTS: &[u8] = include_bytes!("data/requests.csv");

fn csv() -> Format {
    Format::Csv(Columns::default())
}

fn open(bytes: &[u8], format: &Format) -> Result<Trace, TraceError> {
    Trace::new(Cursor::new(bytes.to_vec()), format, None, false)
}

/// All records up to the end or the first error.
fn read(mut trace: Trace) -> (Vec<Record>, Option<TraceError>, Trace) {
    let mut records = Vec::new();
    loop {
        match trace.read() {
            Ok(Some(record)) => records.push(record),
            Ok(None) => return (records, None, trace),
            Err(error) => return (records, Some(error), trace),
        }
    }
}

fn records(bytes: &[u8], format: &Format) -> Vec<Record> {
    let (records, error, _) = read(open(bytes, format).unwrap());
    assert!(error.is_none(), "{error:?}");
    records
}

fn error(bytes: &[u8], format: &Format) -> String {
    let error = match open(bytes, format) {
        Ok(trace) => read(trace).1,
        Err(error) => Some(error),
    };
    error.map_or_else(|| "none".to_string(), |error| error.to_string())
}

/// Reads and skips malformed records: the keys read, the number skipped, and the first of these.
fn skipping(bytes: &[u8], format: &Format) -> (Vec<u64>, u64, String) {
    let trace = Trace::new(Cursor::new(bytes.to_vec()), format, None, true).unwrap();
    let (records, error, trace) = read(trace);
    assert!(error.is_none(), "{error:?}");
    let (skipped, first) = trace.skipped();
    (records.iter().map(|r| r.key).collect(), skipped, first.map_or_else(String::new, |bad| bad.to_string()))
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn zstd(bytes: &[u8]) -> Vec<u8> {
    zstd::stream::encode_all(bytes, 0).unwrap()
}

/// As in libCacheSim's `oracleGeneralBin.h`: u32 time, u64 object, u32 bytes, i64 next request, packed.
fn oracle_general() -> Vec<u8> {
    let record = |time: u32, object: u64, bytes: u32, next: i64| {
        [&time.to_le_bytes()[..], &object.to_le_bytes(), &bytes.to_le_bytes(), &next.to_le_bytes()].concat()
    };
    [record(5, 77, 4096, 3), record(6, u64::MAX, 512, -1), record(9, 77, 4096, i64::MAX)].concat()
}

/// As in libCacheSim's `vscsi.h`: serial number, bytes, elements, command, version, block, microseconds.
fn vscsi_1() -> Vec<u8> {
    let record = |n: u32, bytes: u32, block: u64, micros: u64| {
        let head = [n, bytes, 1].map(u32::to_le_bytes).concat();
        let what = [0x28u16, 1 << 8].map(u16::to_le_bytes).concat();
        [head, what, [block, micros].map(u64::to_le_bytes).concat()].concat()
    };
    [record(1, 4096, 8, 1_500_000), record(2, 8192, 15, 2_000_000), record(3, 512, 8, 2_500_000)].concat()
}

/// The same in version 2: command, version, serial number, bytes, elements, block, microseconds, response time.
fn vscsi_2() -> Vec<u8> {
    let record = |n: u32, bytes: u32, block: u64, micros: u64| {
        let head = [0x2au16, 2 << 8].map(u16::to_le_bytes).concat();
        let what = [n, bytes, 1].map(u32::to_le_bytes).concat();
        [head, what, [block, micros, 99].map(u64::to_le_bytes).concat()].concat()
    };
    [record(1, 4096, 8, 1_500_000), record(2, 8192, 15, 2_000_000), record(3, 512, 8, 2_500_000)].concat()
}

fn plain(key: u64) -> Record {
    Record { key, bytes: None, seconds: None, tenant: None }
}

#[test]
fn columns_are_found_by_their_usual_names() {
    let (records, error, trace) = read(open(REQUESTS, &csv()).unwrap());
    assert!(error.is_none());
    assert_eq!(trace.tenants(), ["north", "south"]);
    let seen: Vec<_> = records.iter().map(|r| (r.bytes.unwrap(), r.seconds, r.tenant)).collect();
    assert_eq!(
        seen[..4],
        [(1200, Some(0.0), Some(0)), (800, Some(0.5), Some(0)), (1200, Some(1.0), Some(1)), (40, Some(1.25), Some(1))]
    );
    let key = |i: usize| records[i].key;
    assert!(key(0) == key(2) && key(2) == key(5) && key(1) == key(4) && key(3) == key(7));
    assert!(key(0) != key(1) && key(0) != key(3));
}

#[test]
fn columns_are_named_or_numbered() {
    let named = Columns {
        key: Some(Column::Name("Volume".into())),
        bytes: Some(Column::Name("OBJ_ID".into())),
        ..Columns::default()
    };
    let text = b"a;obj_id;volume\nx;10;7\ny;20;8\n";
    assert_eq!(
        records(text, &Format::Csv(named)),
        [Record { bytes: Some(10), ..plain(7) }, Record { bytes: Some(20), ..plain(8) }]
    );
    let numbered = Columns { key: Some(Column::Number(2)), time: Some(Column::Number(1)), ..Columns::default() };
    let text = b"1.5  0x10\n2.5  17\n";
    let at = |key, seconds| Record { seconds: Some(seconds), ..plain(key) };
    assert_eq!(records(text, &Format::Csv(numbered)), [at(16, 1.5), at(17, 2.5)]);
}

#[test]
fn plain_text_is_a_key_per_line() {
    assert_eq!(records(b"1\r\n2\n\n1", &csv()), [plain(1), plain(2), plain(1)]);
    let words = records(b"alpha\nbeta\nalpha\n", &csv());
    assert!(words[0] == words[2] && words[0] != words[1]);
    assert_ne!(records(b"007\n7\n", &csv())[0], plain(7));
}

#[test]
fn a_usual_name_in_the_first_line_is_a_title() {
    assert_eq!(records(b"page\n5\n6\n", &csv()), [plain(5), plain(6)]);
}

#[test]
fn oracle_general_is_read_as_libcachesim_writes_it() {
    let of = |key, bytes, seconds| Record { key, bytes: Some(bytes), seconds: Some(seconds), tenant: None };
    let expected = [of(77, 4096, 5.0), of(u64::MAX, 512, 6.0), of(77, 4096, 9.0)];
    assert_eq!(records(&oracle_general(), &Format::OracleGeneral), expected);
}

#[test]
fn both_versions_of_vscsi_give_the_same() {
    let of = |block: u64, bytes, seconds| Record {
        key: block * 512,
        bytes: Some(bytes),
        seconds: Some(seconds),
        tenant: None,
    };
    let expected = [of(8, 4096, 1.5), of(15, 8192, 2.0), of(8, 512, 2.5)];
    assert_eq!(records(&vscsi_1(), &Format::Vscsi), expected);
    assert_eq!(records(&vscsi_2(), &Format::Vscsi), expected);
}

#[test]
fn lackey_counts_accesses_and_skips_valgrinds_lines() {
    let all = records(LACKEY, &Format::Lackey);
    assert_eq!(all.len(), LACKEY.split(|b| *b == b'\n').filter(|l| l.starts_with(b"I") || l.starts_with(b" ")).count());
    assert!(all.len() > 100 && all.iter().all(|r| r.bytes == Some(4096)), "cut into pages");
}

#[test]
fn accesses_are_cut_into_pages() {
    let pages = |bytes: &[u8], format| {
        let trace = Trace::new(Cursor::new(bytes.to_vec()), &format, Some(4096), false).unwrap();
        read(trace).0.iter().map(|r| (r.key, r.bytes.unwrap())).collect::<Vec<_>>()
    };
    assert_eq!(
        pages(b" L fff,2\n S 1000,8\nI  2fff,0\n", Format::Lackey),
        [(0, 4096), (1, 4096), (1, 4096), (2, 4096)]
    );
    // Block 8 is the second page; 8192 bytes from block 15 on end in the fourth.
    assert_eq!(pages(&vscsi_1(), Format::Vscsi).iter().map(|p| p.0).collect::<Vec<_>>(), [1, 1, 2, 3, 1]);
    let mut six: Vec<u64> = pages(LACKEY, Format::Lackey).iter().map(|p| p.0).collect();
    six.sort();
    six.dedup();
    assert_eq!(six.len(), 7, "six pages of data and one of code");
}

#[test]
fn compressed_traces_are_the_same_traces() {
    let lackey = records(LACKEY, &Format::Lackey);
    assert_eq!(records(&gzip(LACKEY), &Format::Lackey), lackey);
    assert_eq!(records(&zstd(LACKEY), &Format::Lackey), lackey);
    let requests = records(REQUESTS, &csv());
    assert_eq!(records(&gzip(REQUESTS), &csv()), requests);
    assert_eq!(records(&zstd(REQUESTS), &csv()), requests);
    for (bytes, format) in
        [(oracle_general(), Format::OracleGeneral), (vscsi_1(), Format::Vscsi), (vscsi_2(), Format::Vscsi)]
    {
        let plain = records(&bytes, &format);
        assert_eq!(records(&gzip(&bytes), &format), plain);
        assert_eq!(records(&zstd(&bytes), &format), plain);
    }
    // Concatenated compressed pieces are one trace.
    let (first, second) = LACKEY.split_at(1000);
    assert_eq!(records(&[gzip(first), gzip(second)].concat(), &Format::Lackey), lackey);
    assert_eq!(records(&[zstd(first), zstd(second)].concat(), &Format::Lackey), lackey);
}

/// The same text by every other supported compressor.
fn packed(text: &[u8]) -> Vec<(&'static str, Vec<u8>)> {
    let mut bzip2 = bzip2::write::BzEncoder::new(Vec::new(), bzip2::Compression::best());
    bzip2.write_all(text).unwrap();
    let mut lz4 = lz4_flex::frame::FrameEncoder::new(Vec::new());
    lz4.write_all(text).unwrap();
    let mut snappy = snap::write::FrameEncoder::new(Vec::new());
    snappy.write_all(text).unwrap();
    vec![
        ("gzip", gzip(text)),
        ("zstd", zstd(text)),
        ("bzip2", bzip2.finish().unwrap()),
        ("lz4", lz4.finish().unwrap()),
        ("snappy", snappy.into_inner().unwrap()),
    ]
}

#[test]
fn reads_every_compression_concatenated_and_nested() {
    let text: Vec<u8> = (0..50_000u64).flat_map(|i| format!("{}\n", i * i % 9973).into_bytes()).collect();
    let expected = records(&text, &csv());
    let (first, second) = text.split_at(100_001);
    for ((name, whole), ((_, a), (_, b))) in
        packed(&text).into_iter().zip(packed(first).into_iter().zip(packed(second)))
    {
        assert_eq!(records(&whole, &csv()), expected, "{name}");
        assert_eq!(records(&[a, b].concat(), &csv()), expected, "{name} in two pieces");
        assert_eq!(records(&gzip(&whole), &csv()), expected, "{name} within gzip");
    }
}

#[test]
fn reads_what_the_xz_tools_write() {
    let three = vec![plain(1), plain(2), plain(1)];
    for (name, packed) in [
        ("xz", &include_bytes!("data/three.xz")[..]),
        ("lzma", include_bytes!("data/three.lzma")),
        ("lzip", include_bytes!("data/three.lz")),
        ("legacy lz4", include_bytes!("data/three.legacy.lz4")),
        ("zstd with a window of 2 GiB", include_bytes!("data/three.long31.zst")),
    ] {
        assert_eq!(records(packed, &csv()), three, "{name}");
    }
    let xz = include_bytes!("data/three.xz");
    assert_eq!(records(&[&xz[..], xz].concat(), &csv()), [&three[..], &three].concat());
    let cut = error(&xz[..xz.len() - 20], &csv());
    assert!(cut.contains("cut short or broken"), "{cut}");
}

#[test]
fn refuses_unsupported_files_by_name() {
    let long = |head: &[u8]| [head, &[7; 600]].concat();
    let mut tar = vec![b'a'; 600];
    tar[257..262].copy_from_slice(b"ustar");
    for (head, name) in [
        (&b"PK\x03\x04"[..], "zip archive"),
        (b"7z\xbc\xaf\x27\x1c", "7z archive"),
        (&[0x1f, 0x9d, 0x90], "compress (.Z)"),
        (b"\x89LZO\0\r\n\x1a\n", "lzop"),
        (b"PAR1", "Parquet"),
        (b"SQLite format 3\0", "SQLite"),
        (&[0x78, 0x9c], "zlib"),
        (&[0xff, 0xfe, b'1', 0, b'\n', 0], "UTF-16"),
        (&[0x8b, 2, 0x80, 0x61, 0x0a, 0x03], "binary data of no known kind"),
    ] {
        assert!(error(&long(head), &csv()).contains(name), "{name}: {}", error(&long(head), &csv()));
        assert!(error(&gzip(&long(head)), &csv()).contains(name), "{name} within gzip");
    }
    assert!(error(&tar, &csv()).contains("tar archive"));
    assert!(error(&[0xf0, 1, 2, 3, 0xff, 0xfe, 4, 5], &Format::Lackey).contains("binary data"));
}

#[test]
fn binary_records_like_an_lzma_header_are_not_lzma() {
    // 93 seconds, object 2^22, 65536 bytes: the bytes of an LZMA header.
    let record =
        [93u32.to_le_bytes().to_vec(), (1u64 << 7).to_le_bytes().to_vec(), 65536u32.to_le_bytes().to_vec()].concat();
    let record = [record, (-1i64).to_le_bytes().to_vec()].concat();
    assert_eq!(records(&record, &Format::OracleGeneral)[0].key, 1 << 7);
}

#[test]
fn a_malformed_line_is_reported_by_number() {
    assert_eq!(
        error(b"time,id\n1,5\nsoon,6\n", &csv()),
        "line 3: 'soon' is not a time in seconds; skip such records with --skip-bad, or check --format (1 of 2 are malformed)"
    );
    assert!(error(b"id,size\n1,5\n\n2,-5\n", &csv()).starts_with("line 4: '-5' is not a number of bytes"));
    assert!(error(b"id,size\n1\n", &csv()).starts_with("line 2: too few columns in '1'"));
    assert!(error(b"id,size\n,5\n", &csv()).starts_with("line 2: too few columns in ',5'"));
    assert!(error(b" L 10,4\n L 10;4\n", &Format::Lackey).starts_with("line 2: ' L 10;4' is no access"));
    assert!(error(b"\x1b[31m\n", &Format::Lackey).starts_with("line 1: '\u{fffd}[31m' is no access"));
}

#[test]
fn a_malformed_record_is_reported_by_offset() {
    let cut = &oracle_general()[..60];
    assert!(
        error(cut, &Format::OracleGeneral).starts_with("byte 48: the trace is cut short: 12 bytes of a record of 24")
    );
    assert!(error(&vscsi_2()[..79], &Format::Vscsi).starts_with("byte 40: the trace is cut short"));
    assert!(error(REQUESTS, &Format::OracleGeneral).starts_with("byte "));
    assert!(error(REQUESTS, &Format::Vscsi).starts_with("byte 0: neither version 1 nor version 2"));
    let mut mixed = vscsi_1();
    mixed[32 + 15] = 7;
    assert!(error(&mixed, &Format::Vscsi).starts_with("byte 32: not a record of version 1"));
}

#[test]
fn malformed_records_are_skipped_and_counted() {
    let (keys, skipped, first) = skipping(b"id,size\n1,5\n2,big\n3\n4,5\n", &csv());
    assert_eq!((keys, skipped, first.as_str()), (vec![1, 4], 2, "line 3: 'big' is not a number of bytes"));
    let (keys, skipped, _) = skipping(&oracle_general()[..60], &Format::OracleGeneral);
    assert_eq!((keys, skipped), (vec![77, u64::MAX], 1));
    let mut mixed = vscsi_1();
    mixed[32 + 15] = 7;
    assert_eq!(skipping(&mixed, &Format::Vscsi).0, [4096, 4096]);
}

#[test]
fn a_truncated_compressed_trace_gives_its_records() {
    let hashed = |i: u64| i.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 20;
    let long: Vec<u8> = (0..100_000).flat_map(|i| format!("{}\n", hashed(i)).into_bytes()).collect();
    for packed in [gzip(&long), zstd(&long)] {
        let half = &packed[..packed.len() / 2];
        let sentence = error(half, &csv());
        assert!(sentence.starts_with("line ") && sentence.contains("cut short"), "{sentence}");
        let (keys, skipped, _) = skipping(half, &csv());
        assert!(keys.len() > 1000 && keys.len() < 100_000 && skipped == 1, "{} {skipped}", keys.len());
    }
    let binary: Vec<u8> = oracle_general().repeat(10_000);
    for packed in [gzip(&binary), zstd(&binary)] {
        let sentence = error(&packed[..packed.len() * 3 / 4], &Format::OracleGeneral);
        assert!(sentence.starts_with("byte ") && sentence.contains("cut short"), "{sentence}");
    }
}

#[test]
fn an_empty_trace_has_no_records() {
    for format in [csv(), Format::OracleGeneral, Format::Vscsi, Format::Lackey] {
        assert!(records(b"", &format).is_empty(), "{format}");
    }
    assert!(records(b"id,size\n", &csv()).is_empty());
}

#[test]
fn a_line_without_an_end_is_refused_before_memory_is_full() {
    struct Endless(u64);
    impl Read for Endless {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let length = buffer.len().min((1 << 28) - self.0 as usize);
            buffer[..length].fill(b'7');
            self.0 += length as u64;
            Ok(length)
        }
    }
    let sentence = match Trace::new(Endless(0), &csv(), None, false) {
        Ok(trace) => read(trace).1.unwrap().to_string(),
        Err(error) => error.to_string(),
    };
    assert!(sentence.starts_with("line 1: longer than"), "{sentence}");
}

#[test]
fn a_missing_column_is_an_error() {
    let of = |key: &str| Format::Csv(Columns { key: Some(Column::Name(key.into())), ..Columns::default() });
    assert_eq!(error(b"a,b\n1,2\n", &of("c")), "there is no column 'c' among 'a, b'");
    assert!(error(b"1,2\n", &csv()).contains("--key-column NAME"));
}

#[test]
fn an_input_that_cannot_be_read_says_why() {
    struct Broken;
    impl Read for Broken {
        fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
            Err(io::Error::from_raw_os_error(5))
        }
    }
    let error = Trace::new(Broken, &csv(), None, true).err().unwrap().to_string();
    assert!(error.starts_with("it could not be read: "), "{error}");
}

#[test]
fn the_first_bad_record_has_its_place() {
    let trace = Trace::new(Cursor::new(b" L x,1\n".to_vec()), &Format::Lackey, None, true).unwrap();
    let (_, _, trace) = read(trace);
    assert_eq!(trace.skipped().1.unwrap().place, Place::Line(1));
}

/// Reads in the detected format, without times and tenants: the format's name, keys, and the number left out.
fn found(text: &str) -> (String, Vec<u64>, u64) {
    let needs = curve::trace::Needs { bytes: false, time: false, tenant: false };
    let reading = curve::trace::Reading { page_bytes: None, skips_bad: false, time_unit: None, needs };
    let trace = Trace::open(Cursor::new(text.as_bytes().to_vec()), &Format::Auto, &reading).unwrap();
    let name = trace.format().to_string();
    let (records, error, trace) = read(trace);
    assert!(error.is_none(), "{text}: {error:?}");
    (name, records.iter().map(|r| r.key).collect(), trace.left_out())
}

#[test]
fn published_layouts_are_recognised() {
    let disk = |number: u64, page: u64| number << 40 | page;
    let (name, keys, _) = found("128166372003061629,hm,0,Read,0,8192,1\n128166372016382155,hm,1,Write,4096,4096,9\n");
    assert_eq!((name.as_str(), keys), ("msr", vec![0, 1, disk(1, 1)]));
    let (name, keys, _) = found("0,16,8192,W,0.551706\n1,8,512,r,0.554041\n");
    assert_eq!((name.as_str(), keys), ("spc", vec![2, 3, disk(1, 1)]));
    let (name, keys, _) = found("419,W,8192,4096,1577808000000046\n419,R,8192,4096,1577808000000146\n");
    assert_eq!((name.as_str(), keys), ("alibaba", vec![2, 2]));
    let (name, keys, out) = found("0,nz:u:a,4,9,1,get,0\n0,nz:u:a,4,0,1,delete,0\n1,nz:u:a,4,9,2,gets,0\n");
    assert!(name == "twitter" && keys.len() == 2 && keys[0] == keys[1] && out == 1, "{name} {keys:?} {out}");
    let (name, keys, out) =
        found("12 REST.PUT.OBJECT 8d4 1056\n13 REST.DELETE.OBJECT 8d4\n14 REST.GET.OBJECT 8d4 1056 0 527\n");
    assert!(name == "ibm-cos" && keys.len() == 2 && keys[0] == keys[1] && out == 1, "{name} {keys:?} {out}");
    let (name, keys, _) = found("0\t-85\tjpeg\t100\t0.01\n1\t-85\tpng\t100\t0.2\n");
    assert!(name == "wiki-cdn" && keys[0] == keys[1], "{name} {keys:?}");
    let (name, keys, _) = found("version,time,op,size,lbn\n1,5633898,2a,512,8\n");
    assert_eq!((name.as_str(), keys), ("cloudphysics", vec![4096]));
    let (name, keys, _) = found("relative_unix\thashed_path_query\tresponse_size\n0\t7\t100\n");
    assert_eq!((name.as_str(), keys), ("csv", vec![7]));
    assert_eq!(found("==1== x\nI  10,4\n L 2000,4\n").0, "lackey");
    assert!(error(b"id,page,size\n1,2,3\n", &Format::Auto).contains("'id' or 'page'"));
    assert!(error(b"{\"id\":1, \"size\":2}\n", &Format::Auto).contains("it is JSON"));
}

#[test]
fn text_is_read_however_it_is_spaced() {
    for text in [
        "1\n2\n1\n",
        "       1\n       2\n       1\n",
        "\u{feff}key\r\n1\r\n\r\n2\r\n1",
        "# a, remark\n1\n2\n#\n1\n# end",
        "# time (ms), op [Put:0, Get:1], object id, size\n0,1,1,9\n5,0,2,9\n6,0,1,9\n",
        "key   size\n1     10\n2   20\n1\t30\n",
        "\"key\",\"when\"\n\"1\",\"x,y\"\n2,soon\n1,\n",
        "key,timestamp,size\n1,soon,x\n2,later,y\n1,,\n",
    ] {
        assert_eq!(found(text).1, [1, 2, 1], "{text}");
    }
}

#[test]
fn a_hundredth_of_the_lines_may_be_malformed() {
    let text = |bad: usize| (0..1000).map(|i| if i < bad { "1,x\n" } else { "1,5\n" }).collect::<String>();
    let (records, error, trace) = read(open(format!("id,size\n{}", text(10)).as_bytes(), &csv()).unwrap());
    assert!(error.is_none() && records.len() == 990, "{error:?}");
    assert_eq!((trace.skipped().0, trace.skipped().1.unwrap().place), (10, Place::Line(2)));
    let error = read(open(format!("id,size\n{}", text(11)).as_bytes(), &csv()).unwrap()).1.unwrap().to_string();
    assert!(error.starts_with("line 2: 'x' is not a number of bytes") && error.contains("11 of 1000"), "{error}");
}

#[test]
fn block_accesses_as_text_equal_vscsi() {
    let text = "sector,size\n8,4096\n15,8192\n8,512\n";
    let pages = |bytes: &[u8], format: &Format| {
        read(Trace::new(Cursor::new(bytes.to_vec()), format, Some(4096), false).unwrap())
            .0
            .iter()
            .map(|r| r.key)
            .collect::<Vec<_>>()
    };
    assert_eq!(pages(text.as_bytes(), &csv()), pages(&vscsi_1(), &Format::Vscsi));
}

#[test]
fn huge_accesses_are_malformed_and_take_no_memory() {
    let error = |text: &str, page_bytes: Option<u64>| {
        let trace = Trace::new(Cursor::new(text.as_bytes().to_vec()), &Format::Auto, page_bytes, false).unwrap();
        read(trace).1.map(|error| error.to_string()).unwrap_or_default()
    };
    for size in ["1000000000000", "1e12", "9223372036854775808", "18446744073709551615"] {
        let found = error(&format!("offset,size\n0,4096\n0,{size}\n4096,4096\n"), None);
        assert!(found.starts_with("line 3: an access of ") && found.contains("larger pages with --page"), "{found}");
    }
    let found = error("offset,size\n0,512\n18446744073709551615,2\n", None);
    assert!(found.starts_with("line 3: 2 bytes from the address 18446744073709551615 on end beyond"), "{found}");
    // The largest access: 4 GiB, and proportionally more with larger pages.
    assert_eq!(error("offset,size\n4096,4294967296\n", None), "");
    assert!(error("offset,size\n4097,4294967296\n", None).starts_with("line 2: an access"));
    assert_eq!(error("offset,size\n0,1000000000000\n", Some(1 << 20)), "");
    // An access that continues into another disk's addresses.
    let found = error("disk,offset,size\n0,0,512\n1,4503599627370495,512\n", None);
    assert!(found.starts_with("line 3: '4503599627370495' is not an address"), "{found}");
    let lackey: String = (0..9).map(|at| format!(" L {at:x}000,8\n")).collect();
    let trace = open(format!("{lackey} S 1000,999999999999999\n").as_bytes(), &Format::Lackey).unwrap();
    let (records, error, trace) = read(trace);
    assert!(error.is_none() && records.len() == 9, "{error:?}");
    assert_eq!((trace.skipped().0, trace.skipped().1.unwrap().place), (1, Place::Line(10)));
}
