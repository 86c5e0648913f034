//! Tones of text and their appearance on a terminal, as plain data.
//!
//! Code chooses a [`Tone`]; its [`Appearance`] follows. Colours are the terminal's own sixteen, so that light and dark
//! backgrounds both work. Without colour, every tone that carries meaning has a weight or a mark as well.

/// The meaning of a piece of text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Tone {
    /// Ordinary text.
    #[default]
    Plain,
    /// Secondary text: heads, hints, line numbers.
    Dim,
    /// Headings and other text to read first.
    Strong,
    /// A success.
    Good,
    /// A warning.
    Warn,
    /// A failure.
    Bad,
    /// A bar over the whole width: the records are not current.
    Alarm,
    /// The name of a field.
    Field,
    /// A string value.
    Text,
    /// A number, a boolean or null.
    Number,
    /// The name of the context.
    Badge,
    /// The name of a protected context.
    Protected,
    /// The row under the cursor.
    Selected,
    /// A match of a search within the screen.
    Hit,
}

/// A colour of the terminal's palette.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names of colours")]
pub enum Colour {
    Red,
    Green,
    Yellow,
    Magenta,
    Cyan,
}

/// The appearance of a tone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Appearance {
    /// Colour of the text; none is the terminal's own.
    pub colour: Option<Colour>,
    /// Heavier than other text.
    pub bold: bool,
    /// Paler than other text.
    pub dim: bool,
    /// Text and background exchanged.
    pub reversed: bool,
    /// With a line below the text.
    pub underlined: bool,
}

impl Tone {
    /// Returns the appearance on a terminal with colours.
    pub const fn appearance(self) -> Appearance {
        let colour = match self {
            Self::Good | Self::Text => Some(Colour::Green),
            Self::Warn | Self::Hit => Some(Colour::Yellow),
            Self::Bad | Self::Alarm | Self::Protected => Some(Colour::Red),
            Self::Field | Self::Badge => Some(Colour::Cyan),
            Self::Number => Some(Colour::Magenta),
            Self::Plain | Self::Dim | Self::Strong | Self::Selected => None,
        };
        Appearance {
            colour,
            bold: matches!(self, Self::Strong | Self::Warn | Self::Bad | Self::Alarm | Self::Hit),
            dim: matches!(self, Self::Dim),
            reversed: matches!(self, Self::Alarm | Self::Badge | Self::Protected | Self::Selected),
            underlined: matches!(self, Self::Hit),
        }
    }
}

impl Appearance {
    /// Returns the same appearance without colour.
    pub const fn without_colour(self) -> Self {
        Self { colour: None, ..self }
    }
}

impl Colour {
    /// Returns the parameter of the escape sequence SGR that sets the colour of text.
    pub const fn sgr(self) -> u8 {
        match self {
            Self::Red => 31,
            Self::Green => 32,
            Self::Yellow => 33,
            Self::Magenta => 35,
            Self::Cyan => 36,
        }
    }
}
