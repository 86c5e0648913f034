//! Finds the message of an HTML page.

/// Returns the title of a page, its first heading, or its text.
pub fn title(text: &str) -> Option<String> {
    let lower = text.to_ascii_lowercase();
    let start = lower.find("<!doctype html").or_else(|| lower.find("<html"))?;
    let inner = element(text, &lower, start, "title").or_else(|| element(text, &lower, start, "h1"));
    inner.map(str::to_owned).or_else(|| Some(text_of(&text[start..]))).filter(|it| !it.is_empty())
}

fn element<'a>(text: &'a str, lower: &str, from: usize, name: &str) -> Option<&'a str> {
    let open = from + lower[from..].find(&format!("<{name}"))?;
    let start = open + lower[open..].find('>')? + 1;
    let end = start + lower[start..].find("</")?;
    Some(text[start..end].trim()).filter(|it| !it.is_empty() && !it.contains('<'))
}

/// Returns the beginning of the text outside of tags.
fn text_of(page: &str) -> String {
    let mut inside = false;
    let mut text = String::new();
    for it in page.chars() {
        match it {
            '<' => inside = true,
            '>' => {
                inside = false;
                text.push(' ');
            }
            _ if !inside => text.push(it),
            _ => {}
        }
        if text.len() > 1024 {
            break;
        }
    }
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
