//! Languages that can be requested, by code and by name.

use isolang::Language as Iso;

use super::script::Script::{self, *};

/// A language.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Language {
    /// ISO 639-1, or 639-3 if there is no shorter code; `zh-Hans` and `zh-Hant` for the two written variants.
    pub code: &'static str,
    /// The English name.
    pub name: &'static str,
    /// Other names, in lower case.
    also: &'static [&'static str],
    /// The scripts of the language.
    pub scripts: &'static [Script],
    /// The language's column in the table; none if the script decides.
    pub column: Option<u8>,
}

/// The columns of the table, in order.
pub(super) const TABLE_COLUMNS: [&str; 63] = [
    "af", "sq", "ar", "az", "eu", "be", "nb", "bs", "bg", "ca", "hr", "cs", "da", "nl", "en", "eo", "et",
    "fi", "fr", "lg", "de", "hi", "hu", "is", "id", "ga", "it", "kk", "la", "lv", "lt", "mk", "ms", "mi",
    "mr", "mn", "nn", "fa", "pl", "pt", "ro", "ru", "sr", "sn", "sk", "sl", "so", "st", "es", "sw", "sv",
    "tl", "ts", "tn", "tr", "uk", "ur", "vi", "cy", "xh", "yo", "zu", "gl",
];

const fn language(
    code: &'static str,
    name: &'static str,
    also: &'static [&'static str],
    scripts: &'static [Script],
) -> Language {
    Language { code, name, also, scripts, column: column(code) }
}

const fn column(code: &str) -> Option<u8> {
    let code = code.as_bytes();
    let mut at = 0;
    while at < TABLE_COLUMNS.len() {
        let it = TABLE_COLUMNS[at].as_bytes();
        if code.len() == 2 && code[0] == it[0] && code[1] == it[1] {
            return Some(at as u8);
        }
        at += 1;
    }
    None
}

const LATIN_SCRIPT: &[Script] = &[Latin];
const CYRILLIC_SCRIPT: &[Script] = &[Cyrillic];
const ARABIC_SCRIPT: &[Script] = &[Arabic];

static ALL_LANGUAGES: &[Language] = &[
    language("af", "Afrikaans", &[], LATIN_SCRIPT),
    language("am", "Amharic", &[], &[Ethiopic]),
    language("ar", "Arabic", &[], ARABIC_SCRIPT),
    language("az", "Azerbaijani", &["azeri"], LATIN_SCRIPT),
    language("be", "Belarusian", &["belarussian"], CYRILLIC_SCRIPT),
    language("bg", "Bulgarian", &[], CYRILLIC_SCRIPT),
    language("bn", "Bengali", &["bangla"], &[Bengali]),
    language("bo", "Tibetan", &[], &[Tibetan]),
    language("bs", "Bosnian", &[], LATIN_SCRIPT),
    language("ca", "Catalan", &["valencian"], LATIN_SCRIPT),
    language("cs", "Czech", &[], LATIN_SCRIPT),
    language("cy", "Welsh", &[], LATIN_SCRIPT),
    language("da", "Danish", &[], LATIN_SCRIPT),
    language("de", "German", &[], LATIN_SCRIPT),
    language("el", "Greek", &[], &[Greek]),
    language("en", "English", &[], LATIN_SCRIPT),
    language("eo", "Esperanto", &[], LATIN_SCRIPT),
    language("es", "Spanish", &["castilian"], LATIN_SCRIPT),
    language("et", "Estonian", &[], LATIN_SCRIPT),
    language("eu", "Basque", &[], LATIN_SCRIPT),
    language("fa", "Persian", &["farsi"], ARABIC_SCRIPT),
    language("fi", "Finnish", &[], LATIN_SCRIPT),
    language("fr", "French", &[], LATIN_SCRIPT),
    language("ga", "Irish", &["irish gaelic"], LATIN_SCRIPT),
    language("gl", "Galician", &[], LATIN_SCRIPT),
    language("gu", "Gujarati", &[], &[Gujarati]),
    language("he", "Hebrew", &["iw"], &[Hebrew]),
    language("hi", "Hindi", &[], &[Devanagari]),
    language("hr", "Croatian", &[], LATIN_SCRIPT),
    language("hu", "Hungarian", &[], LATIN_SCRIPT),
    language("hy", "Armenian", &[], &[Armenian]),
    language("id", "Indonesian", &["bahasa indonesia", "in"], LATIN_SCRIPT),
    language("is", "Icelandic", &[], LATIN_SCRIPT),
    language("it", "Italian", &[], LATIN_SCRIPT),
    language("ja", "Japanese", &[], &[Kana, Han]),
    language("ka", "Georgian", &[], &[Georgian]),
    language("kk", "Kazakh", &[], CYRILLIC_SCRIPT),
    language("km", "Khmer", &[], &[Khmer]),
    language("kn", "Kannada", &[], &[Kannada]),
    language("ko", "Korean", &[], &[Hangul]),
    language("la", "Latin", &[], LATIN_SCRIPT),
    language("lg", "Ganda", &["luganda"], LATIN_SCRIPT),
    language("lo", "Lao", &[], &[Lao]),
    language("lt", "Lithuanian", &[], LATIN_SCRIPT),
    language("lv", "Latvian", &[], LATIN_SCRIPT),
    language("mi", "Maori", &["māori"], LATIN_SCRIPT),
    language("mk", "Macedonian", &[], CYRILLIC_SCRIPT),
    language("ml", "Malayalam", &[], &[Malayalam]),
    language("mn", "Mongolian", &[], CYRILLIC_SCRIPT),
    language("mr", "Marathi", &[], &[Devanagari]),
    language("ms", "Malay", &["bahasa melayu"], LATIN_SCRIPT),
    language("my", "Burmese", &[], &[Myanmar]),
    language("nb", "Norwegian Bokmål", &["bokmål", "bokmal"], LATIN_SCRIPT),
    language("nl", "Dutch", &["flemish"], LATIN_SCRIPT),
    language("nn", "Norwegian Nynorsk", &["nynorsk"], LATIN_SCRIPT),
    language("or", "Odia", &["oriya"], &[Odia]),
    language("pa", "Punjabi", &["panjabi"], &[Gurmukhi]),
    language("pl", "Polish", &[], LATIN_SCRIPT),
    language("pt", "Portuguese", &["brazilian portuguese"], LATIN_SCRIPT),
    language("ro", "Romanian", &["moldovan"], LATIN_SCRIPT),
    language("ru", "Russian", &[], CYRILLIC_SCRIPT),
    language("si", "Sinhala", &["sinhalese"], &[Sinhala]),
    language("sk", "Slovak", &[], LATIN_SCRIPT),
    language("sl", "Slovene", &["slovenian"], LATIN_SCRIPT),
    language("sn", "Shona", &[], LATIN_SCRIPT),
    language("so", "Somali", &[], LATIN_SCRIPT),
    language("sq", "Albanian", &[], LATIN_SCRIPT),
    language("sr", "Serbian", &[], &[Cyrillic, Latin]),
    language("st", "Sotho", &["sesotho"], LATIN_SCRIPT),
    language("sv", "Swedish", &[], LATIN_SCRIPT),
    language("sw", "Swahili", &["kiswahili"], LATIN_SCRIPT),
    language("ta", "Tamil", &[], &[Tamil]),
    language("te", "Telugu", &[], &[Telugu]),
    language("th", "Thai", &[], &[Thai]),
    language("tl", "Tagalog", &["filipino", "fil"], LATIN_SCRIPT),
    language("tn", "Tswana", &["setswana"], LATIN_SCRIPT),
    language("tr", "Turkish", &[], LATIN_SCRIPT),
    language("ts", "Tsonga", &[], LATIN_SCRIPT),
    language("uk", "Ukrainian", &[], CYRILLIC_SCRIPT),
    language("ur", "Urdu", &[], ARABIC_SCRIPT),
    language("vi", "Vietnamese", &[], LATIN_SCRIPT),
    language("xh", "Xhosa", &[], LATIN_SCRIPT),
    language("yo", "Yoruba", &[], LATIN_SCRIPT),
    language("zh", "Chinese", &["mandarin", "cmn"], &[Han]),
    language("zh-Hans", "Simplified Chinese", &["chinese (simplified)"], &[Han]),
    language("zh-Hant", "Traditional Chinese", &["chinese (traditional)"], &[Han]),
    language("zu", "Zulu", &["isizulu"], LATIN_SCRIPT),
];

/// Returns all supported languages.
pub(crate) fn all() -> &'static [Language] {
    ALL_LANGUAGES
}

/// The languages that a code or a name stands for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum LanguageName {
    /// Languages that can be detected.
    Detectable(Vec<&'static Language>),
    /// An existing language that is not in the table, by its English name.
    Undetectable(&'static str),
    /// An unknown name.
    Unknown,
}

/// Resolves a code of ISO 639-1 or 639-3, a tag that begins with one, or an English name.
pub(crate) fn named(text: &str) -> LanguageName {
    let detectable = find(text);
    if !detectable.is_empty() {
        return LanguageName::Detectable(detectable);
    }
    let text = text.trim();
    let mut subtags = text.split(['-', '_']);
    let primary = subtags.next().unwrap_or_default().to_ascii_lowercase();
    let is_subtag = |it: &str| (1..=8).contains(&it.len()) && it.bytes().all(|it| it.is_ascii_alphanumeric());
    let is_tag = subtags.all(is_subtag);
    let by_code = || Iso::from_639_1(&primary).or_else(|| Iso::from_639_3(&primary));
    let by_name = || Iso::from_name_lowercase(&text.to_lowercase());
    let Some(iso) = is_tag.then(by_code).flatten().or_else(by_name) else { return LanguageName::Unknown };
    // Maps `fra` to `fr`.
    let detectable = iso.to_639_1().map(find).unwrap_or_default();
    if detectable.is_empty() {
        LanguageName::Undetectable(iso.to_name())
    } else {
        LanguageName::Detectable(detectable)
    }
}

/// Returns the languages of a code (`fr`, `fr-CA`, `zh-Hant`) or an English name; empty if it is unknown.
/// Norwegian has two.
pub(crate) fn find(text: &str) -> Vec<&'static Language> {
    let wanted = text.trim().to_lowercase().replace('_', "-");
    let by_code = |code: &str| ALL_LANGUAGES.iter().find(|it| it.code.eq_ignore_ascii_case(code));
    if let Some(it) =
        ALL_LANGUAGES.iter().find(|it| it.name.to_lowercase() == wanted || it.also.contains(&wanted.as_str()))
    {
        return vec![it];
    }
    let mut subtags = wanted.split('-');
    let primary = subtags.next().unwrap_or_default();
    let rest: Vec<&str> = subtags.collect();
    match primary {
        "no" | "norwegian" => by_code("nb").into_iter().chain(by_code("nn")).collect(),
        "zh" if rest.iter().any(|it| matches!(*it, "hans" | "cn" | "sg")) => {
            by_code("zh-Hans").into_iter().collect()
        }
        "zh" if rest.iter().any(|it| matches!(*it, "hant" | "tw" | "hk" | "mo")) => {
            by_code("zh-Hant").into_iter().collect()
        }
        _ if rest
            .iter()
            .all(|it| (1..=8).contains(&it.len()) && it.bytes().all(|it| it.is_ascii_alphanumeric())) =>
        {
            ALL_LANGUAGES
                .iter()
                .find(|it| it.code == primary || it.also.contains(&primary) && primary.len() <= 3)
                .into_iter()
                .collect()
        }
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::{LanguageName, find, named};

    #[test]
    fn languages_of_iso_639_exist() {
        let detectable = |text| match named(text) {
            LanguageName::Detectable(found) => found.iter().map(|it| it.code).collect::<Vec<_>>(),
            other => panic!("{text}: {other:?}"),
        };
        assert_eq!(detectable("fra"), ["fr"]);
        assert_eq!(detectable("deu-AT"), ["de"]);
        assert_eq!(detectable("nor"), ["nb", "nn"]);
        assert_eq!(named("mt"), LanguageName::Undetectable("Maltese"));
        assert_eq!(named("mlt"), LanguageName::Undetectable("Maltese"));
        assert_eq!(named("Maltese"), LanguageName::Undetectable("Maltese"));
        assert_eq!(named("ilo-PH"), LanguageName::Undetectable("Iloko"));
        for text in ["xx", "qqq", "none such", "", "f"] {
            assert_eq!(named(text), LanguageName::Unknown, "{text}");
        }
    }

    #[test]
    fn codes_tags_and_names_are_understood() {
        for (text, codes) in [
            ("fr", &["fr"][..]),
            ("fr-CA", &["fr"]),
            ("pt_BR", &["pt"]),
            ("French", &["fr"]),
            (" german ", &["de"]),
            ("zh-TW", &["zh-Hant"]),
            ("zh-Hans-CN", &["zh-Hans"]),
            ("no", &["nb", "nn"]),
            ("fil", &["tl"]),
            ("klingon", &[]),
            ("", &[]),
        ] {
            assert_eq!(find(text).iter().map(|it| it.code).collect::<Vec<_>>(), codes, "{text}");
        }
    }
}
