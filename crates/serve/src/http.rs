//! As much of HTTP as a scrape needs: `GET` and `HEAD`, one request for each connection. Pure: bytes in, bytes out.

use std::rc::Rc;

use crate::exposition::Format;

/// Maximum size of a request's head, bytes.
pub const LONGEST_HEAD: usize = 8192;

/// Maximum number of headers; the server refuses a request with more.
const HEADERS: usize = 64;

/// A client's request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// The path without its query.
    pub path: String,
    /// The format that the client prefers.
    pub format: Format,
    /// `HEAD`: the response has no body.
    pub head_only: bool,
}

/// The server's response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Response {
    pub status: u16,
    content_type: &'static str,
    pub body: Rc<[u8]>,
}

/// What came so far.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Parsed {
    /// More is to come.
    Unfinished,
    /// The whole head.
    Request(Request),
    /// Something else, and the answer to that.
    Refused(Response),
}

/// Understands what a client has sent so far.
pub fn parse(bytes: &[u8]) -> Parsed {
    let mut headers = [httparse::EMPTY_HEADER; HEADERS];
    let mut head = httparse::Request::new(&mut headers);
    let refused = |status, text| Parsed::Refused(Response::text(status, text));
    match head.parse(bytes) {
        Ok(httparse::Status::Partial) if bytes.len() < LONGEST_HEAD => return Parsed::Unfinished,
        Ok(httparse::Status::Complete(_)) => {}
        Ok(httparse::Status::Partial) | Err(httparse::Error::TooManyHeaders) => {
            return refused(431, "the head of the request is too long\n");
        }
        Err(httparse::Error::Version) => return refused(505, "this is spoken in HTTP/1.1\n"),
        Err(_) => return refused(400, "this is no request of HTTP\n"),
    }
    let (Some(method), Some(target)) = (head.method, head.path) else {
        return refused(400, "this is no request of HTTP\n");
    };
    if !matches!(method, "GET" | "HEAD") {
        return refused(405, "there is nothing here to change: GET or HEAD\n");
    }
    let accepted = head.headers.iter().filter(|header| header.name.eq_ignore_ascii_case("accept"));
    let accepted: Vec<&str> = accepted.filter_map(|header| std::str::from_utf8(header.value).ok()).collect();
    Parsed::Request(Request {
        path: target.split(['?', '#']).next().unwrap_or_default().to_string(),
        format: preferred(&accepted.join(",")),
        head_only: method == "HEAD",
    })
}

/// The format that an `Accept` header prefers; of equals, OpenMetrics. Whoever says nothing gets text.
fn preferred(accepted: &str) -> Format {
    let (mut open, mut text) = (0.0f64, 0.0f64);
    for range in accepted.split(',') {
        let mut parts = range.split(';').map(str::trim);
        let kind = parts.next().unwrap_or_default().to_ascii_lowercase();
        let parameters: Vec<(&str, &str)> = parts.filter_map(|part| part.split_once('=')).collect();
        let of = |name: &str| parameters.iter().find(|(n, _)| n.eq_ignore_ascii_case(name)).map(|(_, value)| *value);
        let quality = of("q").map_or(1.0, |q| q.parse().ok().filter(|q| (0.0..=1.0).contains(q)).unwrap_or(0.0));
        let is_known = of("version").is_none_or(|version| matches!(version, "1.0.0" | "0.0.1"));
        match kind.as_str() {
            "application/openmetrics-text" if is_known => open = open.max(quality),
            "text/plain" | "text/*" | "*/*" => text = text.max(quality),
            _ => {}
        }
    }
    if open > 0.0 && open >= text { Format::OpenMetrics } else { Format::Text }
}

impl Response {
    /// A page of metrics.
    pub fn page(content_type: &'static str, body: Rc<[u8]>) -> Response {
        Response { status: 200, content_type, body }
    }

    /// A sentence.
    pub fn text(status: u16, text: &str) -> Response {
        Response { status, content_type: "text/plain; charset=utf-8", body: text.as_bytes().into() }
    }

    /// What goes before the body.
    pub fn head(&self) -> String {
        let reason = match self.status {
            200 => "OK",
            400 => "Bad Request",
            404 => "Not Found",
            405 => "Method Not Allowed",
            408 => "Request Timeout",
            431 => "Request Header Fields Too Large",
            503 => "Service Unavailable",
            _ => "HTTP Version Not Supported",
        };
        let allow = if self.status == 405 { "Allow: GET, HEAD\r\n" } else { "" };
        format!(
            "HTTP/1.1 {} {reason}\r\nContent-Type: {}\r\nContent-Length: {}\r\n{allow}Connection: close\r\n\r\n",
            self.status,
            self.content_type,
            self.body.len()
        )
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const PROMETHEUS: &str = "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.6,\
        application/openmetrics-text;version=0.0.1;q=0.5,text/plain;version=1.0.0;escaping=allow-utf-8;q=0.4,\
        text/plain;version=0.0.4;q=0.3,*/*;q=0.2";

    #[test]
    fn fuzz_http() {
        fuzz::run("http", &fuzz::corpus("http"), |bytes| drop(parse(bytes)));
    }

    fn status(bytes: &[u8]) -> u16 {
        match parse(bytes) {
            Parsed::Refused(response) => response.status,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_client_chooses_the_format() {
        assert_eq!(preferred(PROMETHEUS), Format::OpenMetrics);
        assert_eq!(preferred("application/openmetrics-text"), Format::OpenMetrics);
        assert_eq!(preferred("text/plain;version=0.0.4;q=0.9, application/openmetrics-text; q=0.1"), Format::Text);
        assert_eq!(preferred("application/openmetrics-text;version=2.0.0"), Format::Text);
        for text in ["", "*/*", "text/html", "application/openmetrics-text;q=0", "application/openmetrics-text;q=x"] {
            assert_eq!(preferred(text), Format::Text, "{text}");
        }
    }

    #[test]
    fn a_request_is_understood_when_it_is_whole() {
        let whole = b"GET /metrics?name[]=x HTTP/1.1\r\nHost: a\r\nACCEPT: application/openmetrics-text\r\n\r\n";
        let request = Request { path: "/metrics".into(), format: Format::OpenMetrics, head_only: false };
        assert_eq!(parse(whole), Parsed::Request(request));
        for end in 0..whole.len() {
            assert_eq!(parse(&whole[..end]), Parsed::Unfinished, "{end}");
        }
        let head = Request { path: "/".into(), format: Format::Text, head_only: true };
        assert_eq!(parse(b"HEAD / HTTP/1.0\r\n\r\n"), Parsed::Request(head));
    }

    #[test]
    fn what_is_no_request_is_refused_with_a_reason() {
        assert_eq!(status(b"\x16\x03\x01\x02\x00"), 400, "TLS");
        assert_eq!(status(b"GET /metrics\r\n\r\n"), 400);
        assert_eq!(status(b"POST /metrics HTTP/1.1\r\n\r\n"), 405);
        assert_eq!(status(b"PRI * HTTP/2.0\r\n\r\n"), 505);
        assert_eq!(status(&[b"GET /".as_slice(), &[b'a'; LONGEST_HEAD]].concat()), 431);
        let many = (0..=HEADERS).map(|i| format!("h{i}: x\r\n")).collect::<String>();
        assert_eq!(status(format!("GET / HTTP/1.1\r\n{many}\r\n").as_bytes()), 431);
        assert!(Response::text(405, "").head().contains("\r\nAllow: GET, HEAD\r\n"));
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            parse(&bytes);
        }

        #[test]
        fn no_accept_header_makes_it_panic(text in "[a-z/*;=,.q0-9 ]{0,80}") {
            preferred(&text);
        }
    }
}
