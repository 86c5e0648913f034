//! Character classes of XML.

/// Returns whether a document may contain the character.
pub(super) fn is_char(it: char) -> bool {
    matches!(it, '\t' | '\n' | '\r' | ' '..='\u{fffd}' | '\u{10000}'..)
}

/// Returns whether the character is whitespace.
pub(super) fn is_space(it: char) -> bool {
    matches!(it, ' ' | '\t' | '\n' | '\r')
}

/// Returns whether a name may begin with the character.
pub(super) fn begins_name(it: char) -> bool {
    match it {
        ':' | '_' | 'A'..='Z' | 'a'..='z' => true,
        '\0'..='\u{7f}' => false,
        _ => matches!(it,
            '\u{c0}'..='\u{d6}' | '\u{d8}'..='\u{f6}' | '\u{f8}'..='\u{2ff}' | '\u{370}'..='\u{37d}'
            | '\u{37f}'..='\u{1fff}' | '\u{200c}'..='\u{200d}' | '\u{2070}'..='\u{218f}'
            | '\u{2c00}'..='\u{2fef}' | '\u{3001}'..='\u{d7ff}' | '\u{f900}'..='\u{fdcf}'
            | '\u{fdf0}'..='\u{fffd}' | '\u{10000}'..='\u{effff}'),
    }
}

/// Returns whether a name may contain the character.
pub(super) fn in_name(it: char) -> bool {
    begins_name(it)
        || matches!(it, '-' | '.' | '0'..='9' | '\u{b7}' | '\u{300}'..='\u{36f}' | '\u{203f}'..='\u{2040}')
}

/// Returns whether a public identifier may contain the character.
pub(super) fn is_public(it: char) -> bool {
    it.is_ascii_alphanumeric() || " \r\n-'()+,./:=?;!*#@$_%".contains(it)
}
