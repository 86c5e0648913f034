//! Computes the share of a text that is in the requested languages.

use super::{
    names::{Language, TABLE_COLUMNS, all},
    prose::{Piece, Prose},
    script::{NON_LATIN_SCRIPTS, Script},
    table::{Scores, add_word_weights},
};

/// The result for a text.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum LanguageShare {
    /// The share of the text in the requested languages, and the language of most of the rest.
    Share {
        /// From 0.0 to 1.0, by letters.
        share: f64,
        /// The language or script of most of the rest, by its English name.
        rest: Option<&'static str>,
        /// Whether only samples of the text were read.
        sampled: bool,
    },
    /// The text has no words, or none that indicates a language.
    Undetermined,
}

/// Lead of a requested language over each rival, in eighths of a nat: its prior probability is higher than
/// that of any other language.
const REQUESTED_LEAD: u32 = 24;
/// Lead of a requested language in texts so short that chance decides between languages.
const SHORT_TEXT_LEAD: u32 = 64;
/// Maximum number of letters of such a text.
const MAX_SHORT_TEXT_LETTERS: u32 = 24;
/// Minimum score for a language to be recognized; lower scores come from names or unknown words.
const MIN_LANGUAGE_SCORE: u32 = 40;
/// Number of letters and words below which a text is too short to distinguish languages of one script: they
/// share many greetings, interjections and single words.
const MIN_LETTERS: u32 = 20;
const MIN_WORDS: usize = 4;
/// Maximum number of letters of a text whose every word is read.
const MAX_FULLY_READ_LETTERS: u32 = 120;

/// Languages so similar that one sentence cannot distinguish them; the text as a whole decides.
const SIMILAR_LANGUAGES: [&[&str]; 6] =
    [&["nb", "nn", "da"], &["hr", "bs", "sr"], &["id", "ms"], &["xh", "zu"], &["st", "tn"], &["cs", "sk"]];

/// Returns how much of a text is in these languages; undetermined if the text is too short.
pub(crate) fn ask(text: &str, requested: &[&'static Language]) -> LanguageShare {
    answer(text, requested, true)
}

/// Returns a guess like [`ask`] for texts of a few words; used to decide whether a word list applies.
pub(crate) fn guess(text: &str, requested: &[&'static Language]) -> LanguageShare {
    answer(text, requested, false)
}

fn answer(text: &str, requested: &[&'static Language], certain: bool) -> LanguageShare {
    let prose = Prose::of(text);
    let letters = prose.pieces.iter().map(Piece::weight).sum::<u32>();
    let long = letters > MAX_FULLY_READ_LETTERS;
    let words: usize = prose.pieces.iter().map(|it| prose.words(it).count()).sum();
    let brief = certain && (letters < MIN_LETTERS || words < MIN_WORDS);
    let mut total = [0; TABLE_COLUMNS.len()];
    let pieces: Vec<(&Piece, Option<Scores>)> = prose
        .pieces
        .iter()
        .filter(|it| it.weight() > 0)
        .map(|piece| {
            let scores = Script::main(piece).shared().then(|| {
                let mut scores = [0; TABLE_COLUMNS.len()];
                for word in prose.words(piece) {
                    add_word_weights(word, long, &mut scores);
                }
                for (sum, it) in total.iter_mut().zip(scores) {
                    *sum += it;
                }
                scores
            });
            (piece, scores)
        })
        .collect();
    let lost = lost(&total, requested);
    let (mut inside, mut all) = (0.0, 0.0);
    let mut rest: Vec<(&'static str, f64)> = Vec::new();
    for (piece, scores) in &pieces {
        let weight = f64::from(piece.weight());
        let part = match wanted_writing(&prose, piece, requested) {
            Some(false) => PieceLanguage::Outside("the other way of writing Chinese"),
            _ if brief && scores.is_some() => in_brief(piece, requested),
            _ => part(piece, scores.as_ref(), requested, lost),
        };
        match part {
            PieceLanguage::Undetermined => continue,
            PieceLanguage::Inside(share) => inside += weight * share,
            PieceLanguage::Outside(name) => match rest.iter_mut().find(|it| it.0 == name) {
                Some(it) => it.1 += weight,
                None => rest.push((name, weight)),
            },
        }
        all += weight;
    }
    if all == 0.0 {
        return LanguageShare::Undetermined;
    }
    let most = rest.iter().max_by(|a, b| a.1.total_cmp(&b.1)).map(|it| it.0);
    LanguageShare::Share { share: inside / all, rest: most, sampled: prose.sampled }
}

enum PieceLanguage {
    /// This share of the piece is in a requested language.
    Inside(f64),
    /// The piece is in this other language.
    Outside(&'static str),
    /// The piece indicates no language.
    Undetermined,
}

impl Script {
    /// Returns the script of most of a piece. Words in Latin letters are common in all other scripts.
    fn main(piece: &Piece) -> Self {
        let mut best = Self::Latin;
        let mut most = piece.scripts[Self::Latin as usize] * 2 / 3;
        for script in NON_LATIN_SCRIPTS {
            if piece.scripts[script as usize] > most {
                most = piece.scripts[script as usize];
                best = script;
            }
        }
        best
    }
}

/// Returns the column of the similar language in which the text as a whole is written, if it is not
/// requested.
fn lost(total: &Scores, requested: &[&'static Language]) -> Option<usize> {
    let ours = requested.iter().filter_map(|it| it.column).map(|it| total[usize::from(it)]).max()?;
    let is_requested = |at: &usize| requested.iter().any(|it| it.column.map(usize::from) == Some(*at));
    rivals(requested)
        .filter(|it| !is_requested(it))
        .filter(|it| total[*it] > ours + REQUESTED_LEAD)
        .max_by_key(|it| total[*it])
}

/// Returns the columns of languages similar to the requested ones.
fn rivals(requested: &[&'static Language]) -> impl Iterator<Item = usize> {
    let groups: Vec<&[&str]> = SIMILAR_LANGUAGES
        .into_iter()
        .filter(|group| requested.iter().any(|it| group.contains(&it.code)))
        .collect();
    (0..TABLE_COLUMNS.len()).filter(move |it| groups.iter().any(|group| group.contains(&TABLE_COLUMNS[*it])))
}

/// Evaluates a text of a few words by its script only, if several languages share the script. Words in
/// Latin letters occur in all languages.
fn in_brief(piece: &Piece, requested: &[&'static Language]) -> PieceLanguage {
    let script = Script::main(piece);
    match script != Script::Latin && requested.iter().all(|it| !it.scripts.contains(&script)) {
        true => PieceLanguage::Outside(name(script)),
        false => PieceLanguage::Undetermined,
    }
}

fn part(
    piece: &Piece,
    scores: Option<&Scores>,
    requested: &[&'static Language],
    lost: Option<usize>,
) -> PieceLanguage {
    let script = Script::main(piece);
    let fits: Vec<&Language> = requested.iter().copied().filter(|it| it.scripts.contains(&script)).collect();
    let Some(scores) = scores else {
        return match script {
            Script::Han | Script::Kana => east_asian(piece, &fits),
            _ if fits.is_empty() => PieceLanguage::Outside(name(script)),
            _ => PieceLanguage::Inside(1.0),
        };
    };
    let ours = fits.iter().filter_map(|it| it.column).map(|it| scores[usize::from(it)]).max().unwrap_or(0);
    let is_requested = |at: &usize| requested.iter().any(|it| it.column.map(usize::from) == Some(*at));
    let alike: Vec<usize> = rivals(requested).collect();
    let other = (0..TABLE_COLUMNS.len())
        .filter(|it| !is_requested(it) && !alike.contains(it))
        .max_by_key(|it| scores[*it]);
    let theirs = other.map_or(0, |it| scores[it]);
    let best = ours.max(theirs).max(lost.map_or(0, |it| scores[it]));
    if best < MIN_LANGUAGE_SCORE && !fits.is_empty() {
        return PieceLanguage::Undetermined;
    }
    if fits.is_empty() && best < MIN_LANGUAGE_SCORE {
        return PieceLanguage::Outside(name(script));
    }
    if fits.is_empty()
        || ours + if piece.weight() < MAX_SHORT_TEXT_LETTERS { SHORT_TEXT_LEAD } else { REQUESTED_LEAD }
            < theirs
    {
        let loser = lost.filter(|it| scores[*it] > theirs).or(other);
        return PieceLanguage::Outside(loser.map_or(name(script), language));
    }
    if let Some(lost) = lost {
        return PieceLanguage::Outside(language(lost));
    }
    // Letters of other scripts belong to no requested language, except those of names.
    let foreign: u32 = (0..piece.scripts.len())
        .filter(|it| *it != script as usize && (*it != Script::Latin as usize))
        .map(|it| piece.scripts[it])
        .sum();
    PieceLanguage::Inside(1.0 - f64::from(foreign) / f64::from(piece.weight().max(1)))
}

/// Returns whether Chinese is written in the requested variant, if exactly one of the variants was requested.
fn wanted_writing(prose: &Prose, piece: &Piece, requested: &[&'static Language]) -> Option<bool> {
    let is_requested = |code: &str| requested.iter().any(|it| it.code == code);
    let simplified = is_requested("zh-Hans");
    if simplified == is_requested("zh-Hant") || is_requested("zh") || Script::main(piece) != Script::Han {
        return None;
    }
    let (mut new, mut old) = (0, 0);
    for char in prose.words(piece).flatten().take(400) {
        new += u32::from(SIMPLIFIED_LETTERS.contains(*char));
        old += u32::from(TRADITIONAL_LETTERS.contains(*char));
    }
    (new != old).then_some((new > old) == simplified)
}

/// Usual characters that differ between the two variants, in the same order.
const SIMPLIFIED_LETTERS: &str = "这个们来为会说时国学对发过还开后现实经种问没样动点从当关机见将电业东长车书无语与让给体务数应总线张话认间亲马产进义请气万区计设备网选择号";
const TRADITIONAL_LETTERS: &str = "這個們來為會說時國學對發過還開後現實經種問沒樣動點從當關機見將電業東長車書無語與讓給體務數應總線張話認間親馬產進義請氣萬區計設備網選擇號";

/// Distinguishes Japanese, which has kana among its characters, from Chinese, which has none.
fn east_asian(piece: &Piece, fits: &[&Language]) -> PieceLanguage {
    let kana = piece.scripts[Script::Kana as usize];
    let han = piece.scripts[Script::Han as usize];
    let japanese = kana * 10 >= kana + han && kana > 0;
    let short = kana == 0 && han <= 24;
    let code = |code: &str| fits.iter().any(|it| it.code.starts_with(code));
    match (japanese, code("ja"), code("zh")) {
        (true, true, _) | (false, _, true) => PieceLanguage::Inside(1.0),
        // A Japanese name or heading may have no kana.
        (false, true, _) if short => PieceLanguage::Undetermined,
        (true, ..) => PieceLanguage::Outside("Japanese"),
        (false, ..) => PieceLanguage::Outside("Chinese"),
    }
}

fn language(column: usize) -> &'static str {
    all()
        .iter()
        .find(|it| it.column.map(usize::from) == Some(column))
        .map_or("another language", |it| it.name)
}

/// Returns the name of the language that a script implies.
fn name(script: Script) -> &'static str {
    match script {
        Script::Latin => "a language in Latin letters",
        Script::Cyrillic => "a language in Cyrillic letters",
        Script::Arabic => "a language in Arabic letters",
        Script::Devanagari => "a language in Devanagari",
        _ => all().iter().find(|it| it.scripts.contains(&script)).map_or("another script", |it| it.name),
    }
}
