//! Recognizes lines of code between lines of prose without a fence.

/// Returns whether a line is a statement of a program rather than a sentence.
pub(super) fn is_code(line: &str) -> bool {
    let signs = line.bytes().filter(|it| b"{}()[];=<>_\\|&#*+$".contains(it)).count();
    let ends = line.ends_with(['{', '}', ';']) || line.ends_with("):") || line.ends_with("/>");
    signs * 5 > line.len() || ends && signs * 20 > line.len()
}

/// Returns whether a line after a statement is a comment.
pub(super) fn is_comment(line: &str) -> bool {
    ["#", "//", "/*", "*", "--", "\"\"\""].iter().any(|it| line.starts_with(it))
}

/// Prefixes of statements, each with the characters that the rest of the line must contain.
const STATEMENT_PREFIXES: [(&str, &str); 33] = [
    ("import ", ""),
    ("from ", " import "),
    ("def ", "("),
    ("async def ", "("),
    ("class ", ":"),
    ("class ", "{"),
    ("return ", ""),
    ("elif ", ":"),
    ("else:", ""),
    ("try:", ""),
    ("except", ":"),
    ("finally:", ""),
    ("if ", ":"),
    ("if (", ")"),
    ("for ", ":"),
    ("for (", ")"),
    ("while ", ":"),
    ("while (", ")"),
    ("with ", ":"),
    ("raise ", "("),
    ("print(", ")"),
    ("function ", "("),
    ("const ", "="),
    ("let ", "="),
    ("var ", "="),
    ("fn ", "("),
    ("use ", "::"),
    ("pub ", ""),
    ("package ", ";"),
    ("public ", "("),
    ("#include", ""),
    ("SELECT ", " FROM "),
    ("$ ", ""),
];

/// Returns whether a line has the prefix or the structure of a statement.
pub(super) fn is_statement(line: &str) -> bool {
    let line = line.trim_end();
    let begins =
        |(begins, also): &(&str, &str)| line.strip_prefix(begins).is_some_and(|it| goes_on(it, also));
    if STATEMENT_PREFIXES.iter().any(begins) {
        return true;
    }
    // `name = value`, `name.member += value`, and a call alone on its line.
    let name = line.bytes().take_while(|it| it.is_ascii_alphanumeric() || b"_.[]'\"".contains(it)).count();
    let rest = line[name..].trim_start();
    line.starts_with(|it: char| it.is_ascii_alphabetic())
        && (["= ", "+= ", "-= ", ":= ", "== "].iter().any(|it| rest.starts_with(it))
            || rest.len() == line.len() - name && rest.starts_with('(') && rest.ends_with([')', ';']))
}

/// Returns whether a line with the prefix of a statement continues like a statement.
fn goes_on(rest: &str, also: &str) -> bool {
    match also {
        // "Import duties have risen." is a sentence; a statement is short and has no full stop.
        "" => rest.split_whitespace().count() <= 4 && !rest.ends_with(['.', '!', '?']),
        // "If you like tea:" has few of the characters that conditions contain.
        ":" => {
            rest.ends_with(':') && (rest.len() < 20 || rest.bytes().any(|it| b"()[]=<>_.'\"".contains(&it)))
        }
        ";" | "{" => rest.ends_with(also),
        also => rest.contains(also),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_statements_are_distinguished_from_sentences() {
        for line in [
            "import numpy as np",
            "from os import path",
            "def add(a, b):",
            "class Point:",
            "return a + b",
            "for i in range(10):",
            "if x > 3:",
            "total = 0",
            "self.count += 1",
            "print(\"hello\")",
            "main();",
            "const a = 1;",
            "SELECT name FROM users",
        ] {
            assert!(is_statement(line), "{line}");
        }
        for line in [
            "If you would like to know more about this:",
            "Import duties on steel have risen again this year.",
            "from the beginning of the year until now",
            "let me know what you think",
            "Return the parcel to the shop within two weeks.",
            "for a long time nobody knew",
            "Class begins at nine.",
        ] {
            assert!(!is_statement(line), "{line}");
        }
    }
}
