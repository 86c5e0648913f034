//! Fuzzy matching of words against a text.

/// Returns how well a text matches the words; none if it does not. The letters of each word must occur in
/// their order. Consecutive letters and beginnings of words count more.
pub fn score(words: &str, text: &str) -> Option<i32> {
    let text: Vec<char> = text.to_lowercase().chars().collect();
    words.split_whitespace().map(|word| score_word(&word.to_lowercase(), &text)).sum()
}

fn score_word(word: &str, text: &[char]) -> Option<i32> {
    // The best match over all positions where the word can begin.
    let first = word.chars().next()?;
    let starts = text.iter().enumerate().filter(|(_, c)| **c == first).map(|(at, _)| at);
    starts.filter_map(|start| score_from(word, text, start)).max()
}

fn score_from(word: &str, text: &[char], start: usize) -> Option<i32> {
    let mut total = 0;
    let mut at = start;
    let mut last = None;
    for c in word.chars() {
        at += text[at..].iter().position(|it| *it == c)?;
        let begins = at == 0 || !text[at - 1].is_alphanumeric();
        let follows = last.is_some_and(|last| last + 1 == at);
        total += 1 + if follows { 6 } else { 0 } + if begins { 4 } else { 0 };
        last = Some(at);
        at += 1;
    }
    // Of equally good matches, the earlier one counts more.
    Some(total * 100 - i32::try_from(start.min(99)).unwrap_or(99))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn letters_match_only_in_their_order() {
        assert!(score("arch", "archive the selected project").is_some());
        assert!(score("asp", "archive the selected project").is_some());
        assert!(score("pva", "archive").is_none());
        assert!(score("", "anything").is_some());
        assert!(score("é", "aé").is_some());
    }

    #[test]
    fn whole_words_and_beginnings_come_first() {
        let better = |words: &str, one: &str, other: &str| {
            assert!(score(words, one).unwrap() > score(words, other).unwrap(), "{words}: {one}, {other}");
        };
        better("proj", "show another project", "put rows of all jobs");
        better("key", "make an API key", "monkey business");
        better("new key", "new key", "next monkey now");
        better("tr", "Traces", "filter");
    }
}
