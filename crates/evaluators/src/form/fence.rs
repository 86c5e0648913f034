//! Fenced Markdown blocks, in which models often wrap the requested text.

/// Returns the contents of the first two fenced blocks that have one of `languages` or no language. A block
/// without a closing fence does not count.
pub(crate) fn blocks<'a>(text: &'a str, languages: &[&str]) -> [Option<&'a str>; 2] {
    let mut found = [None, None];
    let mut at = 0;
    let mut open: Option<(usize, usize, bool)> = None;
    for line in text.split_inclusive('\n') {
        let (begins, ends) = (at, at + line.len());
        at = ends;
        let line = line.trim();
        let ticks = line.bytes().take_while(|it| *it == b'`').count();
        match open {
            None if ticks >= 3 && !line[ticks..].contains('`') => {
                let language = line[ticks..].trim();
                let wanted =
                    language.is_empty() || languages.iter().any(|it| it.eq_ignore_ascii_case(language));
                open = Some((ticks, ends, wanted));
            }
            Some((opened, from, wanted)) if ticks >= opened && ticks == line.len() => {
                open = None;
                if wanted && let Some(free) = found.iter_mut().find(|it| it.is_none()) {
                    *free = Some(text[from..begins].trim_end_matches(['\n', '\r']));
                }
            }
            _ => {}
        }
    }
    found
}

/// Returns the only such block; none if there are several.
pub(crate) fn only<'a>(text: &'a str, languages: &[&str]) -> Option<&'a str> {
    match blocks(text, languages) {
        [block, None] => block,
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fenced_blocks_are_found_by_language() {
        let json = |text| blocks(text, &["json"]);
        assert_eq!(json("Here:\n```json\n{\"a\": 1}\n```\nDone."), [Some("{\"a\": 1}"), None]);
        assert_eq!(json("```\n1\n```\n```JSON\n2\n```"), [Some("1"), Some("2")]);
        assert_eq!(json("```python\nprint()\n```\n```json\n2\n```"), [Some("2"), None]);
        assert_eq!(json("````json\n\"```\"\n````"), [Some("\"```\""), None]);
        assert_eq!(json("```json\n1"), [None, None]);
        assert_eq!(json("`json`"), [None, None]);
    }
}
