//! `POST /embeddings` of OpenAI's protocol: what is sent and how the answer is read. Pure.
//!
//! Vectors are asked for in base64, as OpenAI's own client does, because reading 1,536 numbers in
//! decimals costs twenty times as much; who answers with numbers all the same is understood.

use std::fmt;

use api::search::DIMENSIONS;
use base64::{Engine, engine::general_purpose::STANDARD};
use serde::{
    Deserialize, Deserializer, Serialize,
    de::{Error, SeqAccess, Visitor},
};
use serde_json::value::RawValue;
use store::vectors::{BadVector, UnitVector};

/// Numbers of a vector that are read before it is given up as too long.
const MOST_READ: usize = 8 * DIMENSIONS;

#[derive(Serialize)]
struct Request<'a> {
    model: &'a str,
    input: &'a [&'a str],
    encoding_format: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    dimensions: Option<usize>,
}

/// The body that asks for the vectors of these texts.
pub fn request(model: &str, texts: &[&str]) -> Vec<u8> {
    // The models of this family give as many numbers as are asked for, and the largest of them more
    // than fit when nothing is said. Others refuse the word.
    let dimensions = model.contains("text-embedding-3").then_some(DIMENSIONS);
    let request = Request { model, input: texts, encoding_format: "base64", dimensions };
    // Texts and numbers always serialise.
    serde_json::to_vec(&request).unwrap_or_default()
}

#[derive(Deserialize)]
struct Answer<'a> {
    #[serde(borrow)]
    data: &'a RawValue,
}

#[derive(Deserialize)]
struct Item {
    #[serde(default)]
    index: Option<usize>,
    embedding: Numbers,
}

/// The vectors of `count` texts in their order.
///
/// # Errors
/// When it is another number of vectors, or one of them can't be used; in words for whoever chose
/// the model.
pub fn vectors(body: &[u8], count: usize) -> Result<Vec<UnitVector>, String> {
    let unreadable = |it| format!("its answer can't be read: {it}");
    let answer: Answer<'_> = serde_json::from_slice(body).map_err(unreadable)?;
    let mut data = serde_json::Deserializer::from_str(answer.data.get());
    let items = data.deserialize_seq(Items(count)).map_err(unreadable)?;
    if items.len() != count {
        return Err(format!("it answered {} vectors to {count} texts", items.len()));
    }
    let mut vectors: Vec<Option<UnitVector>> = vec![None; count];
    for (place, item) in items.iter().enumerate() {
        if let Some(vector) = vectors.get_mut(item.index.unwrap_or(place)) {
            *vector = Some(UnitVector::of(&item.embedding.0).map_err(unusable)?);
        }
    }
    let vectors: Option<Vec<UnitVector>> = vectors.into_iter().collect();
    vectors.ok_or_else(|| "its vectors are not numbered one by one".to_owned())
}

/// What is wrong with a vector, in words for whoever chose the model.
fn unusable(why: BadVector) -> String {
    match why {
        BadVector::Length(0) => "it answered a vector without numbers".to_owned(),
        BadVector::Length(_) => format!(
            "its model gives vectors of more than {DIMENSIONS} numbers: choose one that gives at most so many"
        ),
        BadVector::NotFinite => "it answered a vector with numbers that are not finite".to_owned(),
        BadVector::Zero => "it answered a vector of zeros".to_owned(),
    }
}

/// Reads so many items at most: an answer may hold half a million empty ones.
struct Items(usize);

impl<'de> Visitor<'de> for Items {
    type Value = Vec<Item>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a list of vectors")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Vec<Item>, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = list.next_element()? {
            if items.len() == self.0 {
                return Err(A::Error::custom(format!("more than {} vectors", self.0)));
            }
            items.push(item);
        }
        Ok(items)
    }
}

/// Numbers of a vector, however they are written.
struct Numbers(Vec<f32>);

impl<'de> Deserialize<'de> for Numbers {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(NumbersVisitor)
    }
}

struct NumbersVisitor;

impl<'de> Visitor<'de> for NumbersVisitor {
    type Value = Numbers;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a list of numbers, or 32-bit floats in base64")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Numbers, E> {
        let bytes = STANDARD.decode(text).map_err(E::custom)?;
        let (numbers, rest) = bytes.as_chunks::<4>();
        if !rest.is_empty() {
            return Err(E::custom("bytes that are no 32-bit floats"));
        }
        Ok(Numbers(numbers.iter().map(|it| f32::from_le_bytes(*it)).collect()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Numbers, A::Error> {
        let mut numbers = Vec::new();
        while let Some(number) = list.next_element()? {
            if numbers.len() == MOST_READ {
                return Err(A::Error::custom("a vector without end"));
            }
            numbers.push(number);
        }
        Ok(Numbers(numbers))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(answer: &serde_json::Value, count: usize) -> Result<Vec<UnitVector>, String> {
        vectors(answer.to_string().as_bytes(), count)
    }

    fn base64(numbers: &[f32]) -> String {
        STANDARD.encode(numbers.iter().flat_map(|it| it.to_le_bytes()).collect::<Vec<_>>())
    }

    #[test]
    fn both_ways_of_writing_are_read_in_the_order_of_the_index() {
        let answer = json!({"object": "list", "data": [
            {"index": 1, "embedding": [3, -4]}, {"index": 0, "embedding": base64(&[0.0, 2.0])}]});
        let found = read(&answer, 2).unwrap();
        assert_eq!((found[0].numbers(), found[1].numbers()), (&[0.0, 1.0][..], &[0.6, -0.8][..]));
        let unnumbered = json!({"data": [{"embedding": [1]}, {"embedding": [0, 2]}]});
        assert_eq!(read(&unnumbered, 2).unwrap()[1].numbers(), [0.0, 1.0]);
    }

    #[test]
    fn what_can_not_be_used_is_said() {
        for (answer, count, says) in [
            (json!({"data": []}), 1, "0 vectors to 1 texts"),
            (json!({"data": vec![json!({"embedding": []}); 100_000]}), 2, "more than 2 vectors"),
            (json!({"data": {"0": 1}}), 1, "can't be read"),
            (
                json!({"data": [{"index": 0, "embedding": [1]}, {"index": 0, "embedding": [1]}]}),
                2,
                "numbered",
            ),
            (json!({"data": [{"index": 7, "embedding": [1]}]}), 1, "numbered"),
            (json!({"data": [{"embedding": vec![1; DIMENSIONS + 1]}]}), 1, "more than 1536"),
            (json!({"data": [{"embedding": vec![1; MOST_READ + 1]}]}), 1, "without end"),
            (json!({"data": [{"embedding": [0.0, 0]}]}), 1, "of zeros"),
            (json!({"data": [{"embedding": []}]}), 1, "without numbers"),
            (json!({"data": [{"embedding": base64(&[f32::NAN])}]}), 1, "not finite"),
            (json!({"data": [{"embedding": base64(&[f32::INFINITY])}]}), 1, "not finite"),
            (json!({"data": [{"embedding": "AAA="}]}), 1, "no 32-bit floats"),
            (json!({"data": [{"embedding": [1, null]}]}), 1, "can't be read"),
            (json!({"data": [{"embedding": [1e300]}]}), 1, "can't be read"),
            (json!({"vectors": 1}), 1, "can't be read"),
        ] {
            let refused = read(&answer, count).unwrap_err();
            assert!(refused.contains(says), "{refused}");
        }
        assert!(vectors(b"{\"data\":[{\"embedding\":[NaN]}]}", 1).is_err());
    }
}
