//! Scripts of letters.

/// A script.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Script {
    Latin,
    Cyrillic,
    Greek,
    Arabic,
    Hebrew,
    Devanagari,
    Bengali,
    Gurmukhi,
    Gujarati,
    Odia,
    Tamil,
    Telugu,
    Kannada,
    Malayalam,
    Sinhala,
    Thai,
    Lao,
    Tibetan,
    Myanmar,
    Georgian,
    Armenian,
    Ethiopic,
    Khmer,
    Hangul,
    Kana,
    Han,
}

/// All scripts except Latin, whose words are common in texts of all others.
pub(super) const NON_LATIN_SCRIPTS: [Script; SCRIPT_COUNT - 1] = {
    use Script::*;
    [
        Cyrillic, Greek, Arabic, Hebrew, Devanagari, Bengali, Gurmukhi, Gujarati, Odia, Tamil, Telugu,
        Kannada, Malayalam, Sinhala, Thai, Lao, Tibetan, Myanmar, Georgian, Armenian, Ethiopic, Khmer,
        Hangul, Kana, Han,
    ]
};

/// Number of scripts.
pub(super) const SCRIPT_COUNT: usize = Script::Han as usize + 1;

impl Script {
    /// Returns the script of a letter; none for symbols, digits and other scripts.
    pub(super) fn of(char: char) -> Option<Self> {
        let code = u32::from(char);
        if code < 0x80 {
            return char.is_ascii_alphabetic().then_some(Self::Latin);
        }
        Some(match code {
            0xAA | 0xBA | 0xC0..=0xD6 | 0xD8..=0xF6 | 0xF8..=0x24F | 0x1E00..=0x1EFF => Self::Latin,
            0x370..=0x3FF | 0x1F00..=0x1FFF if char.is_alphabetic() => Self::Greek,
            0x400..=0x481 | 0x48A..=0x52F => Self::Cyrillic,
            0x531..=0x587 if char.is_alphabetic() => Self::Armenian,
            0x5D0..=0x5F2 => Self::Hebrew,
            0x620..=0x65F
            | 0x66E..=0x6D3
            | 0x6D5..=0x6EF
            | 0x6FA..=0x6FF
            | 0x750..=0x77F
            | 0xFB50..=0xFDFF
            | 0xFE70..=0xFEFC => Self::Arabic,
            0x900..=0x963 | 0x971..=0x97F => Self::Devanagari,
            0x980..=0x9E3 => Self::Bengali,
            0xA01..=0xA65 | 0xA70..=0xA75 => Self::Gurmukhi,
            0xA81..=0xAE5 => Self::Gujarati,
            0xB01..=0xB65 => Self::Odia,
            0xB82..=0xBE5 => Self::Tamil,
            0xC00..=0xC65 => Self::Telugu,
            0xC80..=0xCE5 => Self::Kannada,
            0xD00..=0xD65 => Self::Malayalam,
            0xD81..=0xDF3 => Self::Sinhala,
            0xE01..=0xE4E => Self::Thai,
            0xE81..=0xECD => Self::Lao,
            0xF40..=0xFBC => Self::Tibetan,
            0x1000..=0x103F | 0x1050..=0x109F => Self::Myanmar,
            0x10A0..=0x10FF | 0x1C90..=0x1CBF => Self::Georgian,
            0x1100..=0x11FF | 0x3131..=0x318E | 0xAC00..=0xD7A3 => Self::Hangul,
            0x1200..=0x135F => Self::Ethiopic,
            0x1780..=0x17D3 => Self::Khmer,
            0x3041..=0x3096 | 0x309D..=0x309F | 0x30A1..=0x30FA | 0x30FC..=0x30FF | 0xFF66..=0xFF9D => {
                Self::Kana
            }
            0x3005 | 0x3400..=0x4DBF | 0x4E00..=0x9FFF | 0xF900..=0xFAFF | 0x20000..=0x323AF => Self::Han,
            _ => return None,
        })
    }

    /// Returns the number of alphabetic letters that carry as much information as one letter of this script.
    pub(super) fn weight(self) -> u32 {
        match self {
            Self::Han => 3,
            Self::Hangul | Self::Kana | Self::Ethiopic => 2,
            _ => 1,
        }
    }

    /// Returns whether several supported languages use the script, so that the table must decide.
    pub(super) fn shared(self) -> bool {
        matches!(self, Self::Latin | Self::Cyrillic | Self::Arabic | Self::Devanagari)
    }
}
