//! Names and reasons in the terms of each form. Names are bytes that the application chose: they may be no text, or hold what the form
//! gives a meaning to.

/// The text that `text` makes of each character and `junk` of each byte that is of none.
fn escaped(bytes: &[u8], mut text: impl FnMut(&mut String, char), mut junk: impl FnMut(&mut String, u8)) -> String {
    let mut out = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        chunk.valid().chars().for_each(|c| text(&mut out, c));
        chunk.invalid().iter().for_each(|&byte| junk(&mut out, byte));
    }
    out
}

/// On one line, without control characters: what cannot be shown is escaped as Rust does it, other bytes are `\xNN`.
pub fn line(bytes: &[u8]) -> String {
    let text = |out: &mut String, c| match c {
        '\'' | '"' => out.push(c),
        c => out.extend(c.escape_debug()),
    };
    escaped(bytes, text, |out, byte| out.push_str(&format!("\\x{byte:02x}")))
}

/// As [`line`], in quotes.
pub fn quoted(bytes: &[u8]) -> String {
    format!("\"{}\"", line(bytes).replace('"', "\\\""))
}

/// What stands for bytes that are no text.
const UNKNOWN: char = char::REPLACEMENT_CHARACTER;

/// The inside of a JSON string, in UTF-8. Bytes that are no text become U+FFFD.
pub fn json(bytes: &[u8]) -> String {
    let text = |out: &mut String, c| match c {
        '"' => out.push_str("\\\""),
        '\\' => out.push_str("\\\\"),
        '\n' => out.push_str("\\n"),
        '\r' => out.push_str("\\r"),
        '\t' => out.push_str("\\t"),
        // the last two end lines in JavaScript
        c if c.is_control() || matches!(c, '\u{2028}' | '\u{2029}') => {
            out.push_str(&format!("\\u{:04x}", u32::from(c)))
        }
        c => out.push(c),
    };
    escaped(bytes, text, |out, _| out.push(UNKNOWN))
}

/// Text inside the elements and attributes of an HTML-like label, in UTF-8. What XML cannot hold becomes U+FFFD.
pub fn html(bytes: &[u8]) -> String {
    let text = |out: &mut String, c: char| match c {
        '&' => out.push_str("&amp;"),
        '<' => out.push_str("&lt;"),
        '>' => out.push_str("&gt;"),
        '"' => out.push_str("&quot;"),
        '\'' => out.push_str("&#39;"),
        '\t' | '\n' => out.push(' '),
        c if c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}') => out.push(UNKNOWN),
        c => out.push(c),
    };
    escaped(bytes, text, |out, _| out.push(UNKNOWN))
}
