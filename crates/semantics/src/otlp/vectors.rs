//! Removes embedding vectors from JSON text: they are not readable, and larger than the rest.

/// Shorter lists of numbers are kept: bounds, scores, logits.
const MIN_VECTOR_NUMBERS: usize = 64;

/// Replaces every long list of numbers by its length.
pub(super) fn shortened(json: String) -> String {
    let bytes = json.as_bytes();
    if !matches!(bytes.first(), Some(b'[' | b'{')) || json.len() < 2 * MIN_VECTOR_NUMBERS {
        return json;
    }
    let mut out = String::new();
    let (mut at, mut copied) = (0, 0);
    while at < bytes.len() {
        match bytes[at] {
            b'"' => at = end_of_string(bytes, at),
            b'[' => {
                let (numbers, end) = numbers(bytes, at + 1);
                if numbers >= MIN_VECTOR_NUMBERS {
                    out.push_str(&json[copied..at]);
                    out.push_str(&format!("\"({numbers} numbers)\""));
                    copied = end;
                }
                at = end.max(at + 1);
            }
            _ => at += 1,
        }
    }
    if copied == 0 {
        return json;
    }
    out.push_str(&json[copied..]);
    out
}

/// Counts the numbers from here to the end of the list, and returns where it ends. For a list of other
/// items, the count is 0 and the end is its first other item.
fn numbers(bytes: &[u8], start: usize) -> (usize, usize) {
    let mut count = 0;
    let mut at = start;
    let mut in_number = false;
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'0'..=b'9' | b'-' | b'+' | b'.' | b'e' | b'E' => {
                count += usize::from(!in_number);
                in_number = true;
            }
            b',' | b' ' | b'\n' | b'\r' | b'\t' => in_number = false,
            b']' => return (count, at + 1),
            _ => return (0, at),
        }
        at += 1;
    }
    (0, at)
}

fn end_of_string(bytes: &[u8], start: usize) -> usize {
    let mut at = start + 1;
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'\\' => at += 2,
            b'"' => return at + 1,
            _ => at += 1,
        }
    }
    bytes.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_lists_of_numbers_become_their_length() {
        let vector = vec!["-0.5e-3"; 64].join(", ");
        let long = format!(r#"{{"a":"[{vector}] ü \" [","b":[[{vector}],[1,2],["x",{vector}]]}}"#);
        let expected = format!(r#"{{"a":"[{vector}] ü \" [","b":["(64 numbers)",[1,2],["x",{vector}]]}}"#);
        assert_eq!(shortened(long), expected);
        assert_eq!(shortened(format!("[{vector}]")), "\"(64 numbers)\"");
        for kept in [
            format!("[{vector}"),
            format!("text [{vector}]"),
            "[".repeat(500),
            "[\"".repeat(100),
            "[\"\\".repeat(64),
        ] {
            assert_eq!(shortened(kept.clone()), kept);
        }
    }
}
