//! Worked examples and hostile texts; the tests of the W3C suite are in `form/tests.rs`.

use super::*;

fn good(text: &str) {
    assert_eq!(well_formed(text, true), Ok(()), "{text}");
}

fn bad(text: &str, part: &str) {
    let why = well_formed(text, true).unwrap_err();
    assert!(why.contains(part), "{}: {why}", text.chars().take(200).collect::<String>());
}

#[test]
fn documents_are_accepted_or_rejected() {
    good("<a/>");
    good(
        "<?xml version='1.0' encoding=\"UTF-8\" standalone='no' ?>\n<!-- c --><a b='1' c=\"&lt;\">t<![CDATA[<&]]></a>\n<?pi x?>",
    );
    good("<a xmlns:p='u'><p:b p:c='1' c='2'/></a>");
    good("<!DOCTYPE a [<!ELEMENT a (b,(c|d)*)?><!ATTLIST a x (y|z) 'y'><!ENTITY e '<b>t</b>'>]><a>&e;</a>");
    bad("", "text where the outermost element should begin");
    bad("plain", "line 1 column 1");
    bad("<a>\n<b>\n</a></b>", "line 3 column 1: an end tag of another name");
    bad("<a/><b/>", "something after");
    bad("<a/>text", "something after");
    bad("<a b=1/>", "a quotation mark is missing");
    bad("<a b='1' b='2'/>", "occurs twice");
    bad("<a b='1'c='2'/>", "white space is missing");
    bad("<a>AT&T</a>", "semicolon");
    bad("<a>1 & 2</a>", "&amp;");
    bad("<a>&nbsp;</a>", "not declared");
    bad("<a>&#0;</a>", "character that XML does not allow");
    bad("<a>\u{1}</a>", "does not allow");
    bad("<a><br></a>", "another name");
    bad("<a>]]></a>", "]]>");
    bad("<a><!-- -- --></a>", "two hyphens");
    bad(" <?xml version='1.0'?><a/>", "very beginning");
    bad("<p:a/>", "bound to no namespace");
    bad("<a xmlns:p='u' xmlns:q='u' p:x='1' q:x='2'/>", "different prefixes");
    bad("<a:b:c xmlns:a='u'/>", "separates no prefix");
    assert_eq!(well_formed("<p:a/>", false), Ok(()));
}

#[test]
fn xml_entities_neither_expand_nor_recurse_without_bound() {
    let lol: String =
        (1..12).map(|i| format!("<!ENTITY e{i} '{}'>", format!("&e{};", i - 1).repeat(10))).collect();
    let bomb = format!("<!DOCTYPE a [<!ENTITY e0 'lol'>{lol}]><a>&e11;</a>");
    bad(&bomb, "expand to too much");
    bad(&bomb.replace("<a>&e11;</a>", "<a b='&e11;'/>"), "expand to too much");
    bad("<!DOCTYPE a [<!ENTITY x '&y;'><!ENTITY y '&x;'>]><a>&x;</a>", "contains itself");
    let defaults: String = (0..2_000).map(|it| format!("<!ATTLIST b xmlns:p{it} CDATA 'u'>")).collect();
    bad(&format!("<!DOCTYPE a [{defaults}]><a>{}</a>", "<b/>".repeat(10_000)), "too many elements");
    good(&format!("<!DOCTYPE a [{defaults}]><a><b><p1:c/></b></a>"));
    // The default namespaces of open elements are not stored for each element.
    let long = format!("<!DOCTYPE b [<!ATTLIST b xmlns:p CDATA '{}'>]>", "u".repeat(100_000));
    bad(&format!("{long}{}{}", "<b>".repeat(2_000), "</b>".repeat(2_000)), "too many elements");
    good(&format!("{long}<b><b/></b>"));
    let usual = "<!DOCTYPE b [<!ATTLIST b xmlns CDATA 'http://www.w3.org/1999/xhtml'>]>";
    good(&format!("{usual}<b>{}</b>", "<b/>".repeat(100_000)));
    let many: String = (0..200_000).map(|it| format!(" xmlns:p{it} CDATA 'u'")).collect();
    good(&format!("<!DOCTYPE a [<!ATTLIST b{many}>]><a/>"));
    good("<!DOCTYPE a [<!ATTLIST p:a xmlns:p CDATA 'u' xmlns:p CDATA ''>]><p:a/>");
    bad("<!DOCTYPE a [<!ENTITY x '<b>'>]><a>&x;</b></a>", "not closed");
    bad("<!DOCTYPE a [<!ENTITY x '&#60;'>]><a b='&x;'/>", "a < within");
}

#[test]
fn large_and_deep_texts_are_read() {
    good(&format!("{}{}", "<a>".repeat(1_000_000), "</a>".repeat(1_000_000)));
    good(&format!("<a>{}</a>", "x".repeat(10_000_000)));
    bad(&"<a ".repeat(1_000_000), "a name is missing");
    bad(&"<!DOCTYPE a [<!ELEMENT a ".replace("a ", &format!("a {}", "(".repeat(1_000_000))), "");
    let attributes: String = (0..200_000).map(|it| format!(" a{it}='{it}'")).collect();
    good(&format!("<a{attributes}/>"));
    let scopes: String = (0..200_000).map(|it| format!("<p{it}:a xmlns:p{it}='u'>")).collect();
    bad(&scopes, "not closed");
}

#[test]
fn long_documents_are_interrupted() {
    let attributes: String = (0..200_000).map(|it| format!(" a{it}='{it}'")).collect();
    for text in [
        format!("<a>{}</a>", "<b/>".repeat(100_000)),
        format!("<a>{}</a>", "x".repeat(10_000_000)),
        format!("<a{attributes}/>"),
        format!("<!DOCTYPE a [{}]><a/>", "<!ELEMENT b ANY>".repeat(100_000)),
    ] {
        let checked = crate::interruption::interruptible(|| true, || well_formed(&text, true));
        assert!(checked.is_err(), "{checked:?}");
    }
}
