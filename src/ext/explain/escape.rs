//! Names and reasons in the terms of each form. Names are bytes that the application chose: they may be no text, or hold what the form
//! gives a meaning to.

/// Calls `text` for each character and `junk` for each byte that is of none.
fn walk(bytes: &[u8], mut text: impl FnMut(char), mut junk: impl FnMut(u8)) {
    for chunk in bytes.utf8_chunks() {
        chunk.valid().chars().for_each(&mut text);
        chunk.invalid().iter().copied().for_each(&mut junk);
    }
}

/// On one line, without control characters: what cannot be shown is escaped as Rust does it, other bytes are `\xNN`.
pub fn line(bytes: &[u8]) -> String {
    use std::fmt::Write;
    let out = std::cell::RefCell::new(String::with_capacity(bytes.len()));
    walk(
        bytes,
        |c| match c {
            '\'' | '"' => out.borrow_mut().push(c),
            c => out.borrow_mut().extend(c.escape_debug()),
        },
        |byte| {
            let _ = write!(out.borrow_mut(), "\\x{byte:02x}");
        },
    );
    out.into_inner()
}

/// As [`line`], in quotes.
pub fn quoted(bytes: &[u8]) -> String {
    format!("\"{}\"", line(bytes).replace('"', "\\\""))
}

/// What stands for bytes that are no text.
const UNKNOWN: char = char::REPLACEMENT_CHARACTER;

/// The inside of a JSON string, in UTF-8. Bytes that are no text become U+FFFD.
pub fn json(bytes: &[u8]) -> String {
    use std::fmt::Write;
    let out = std::cell::RefCell::new(String::with_capacity(bytes.len()));
    walk(
        bytes,
        |c| {
            let mut out = out.borrow_mut();
            match c {
                '"' => out.push_str("\\\""),
                '\\' => out.push_str("\\\\"),
                '\n' => out.push_str("\\n"),
                '\r' => out.push_str("\\r"),
                '\t' => out.push_str("\\t"),
                // the last two end lines in JavaScript
                c if c.is_control() || matches!(c, '\u{2028}' | '\u{2029}') => {
                    let _ = write!(out, "\\u{:04x}", u32::from(c));
                }
                c => out.push(c),
            }
        },
        |_| out.borrow_mut().push(UNKNOWN),
    );
    out.into_inner()
}

/// Text inside the elements and attributes of an HTML-like label, in UTF-8. What XML cannot hold becomes U+FFFD.
pub fn html(bytes: &[u8]) -> String {
    let out = std::cell::RefCell::new(String::with_capacity(bytes.len()));
    walk(
        bytes,
        |c| {
            let mut out = out.borrow_mut();
            match c {
                '&' => out.push_str("&amp;"),
                '<' => out.push_str("&lt;"),
                '>' => out.push_str("&gt;"),
                '"' => out.push_str("&quot;"),
                '\'' => out.push_str("&#39;"),
                '\t' | '\n' => out.push(' '),
                c if c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}') => out.push(UNKNOWN),
                c => out.push(c),
            }
        },
        |_| out.borrow_mut().push(UNKNOWN),
    );
    out.into_inner()
}
