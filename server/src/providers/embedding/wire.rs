//! `POST /embeddings` of OpenAI's protocol: builds requests and parses responses. Pure.
//!
//! Vectors are requested in base64, like OpenAI's own client does, because parsing 1,536 decimal
//! numbers takes twenty times as long; responses with numbers are accepted too.

use std::{borrow::Cow, fmt};

use api::search::DIMENSIONS;
use base64::{Engine, engine::general_purpose::STANDARD};
use serde::{
    Deserialize, Deserializer, Serialize,
    de::{DeserializeSeed, Error, IgnoredAny, MapAccess, SeqAccess, Visitor},
};
use store::vectors::{BadVector, UnitVector};

/// Maximum number of numbers of a vector that are parsed before it is rejected as too long.
const MAX_PARSED_NUMBERS: usize = 8 * DIMENSIONS;

#[derive(Serialize)]
struct EmbeddingRequest<'a> {
    model: &'a str,
    input: &'a [&'a str],
    encoding_format: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    dimensions: Option<usize>,
}

/// Returns the body of a request for the vectors of these texts.
pub fn request(model: &str, texts: &[&str]) -> Vec<u8> {
    // The models of this family return the requested number of dimensions, and by default more than
    // fit. Other models reject the parameter.
    let dimensions = model.contains("text-embedding-3").then_some(DIMENSIONS);
    let request = EmbeddingRequest { model, input: texts, encoding_format: "base64", dimensions };
    // Serializing texts and numbers never fails.
    serde_json::to_vec(&request).unwrap_or_default()
}

#[derive(Deserialize)]
struct EmbeddingItem {
    #[serde(default)]
    index: Option<usize>,
    embedding: Numbers,
}

/// Returns the vectors of `count` texts in their order.
///
/// # Errors
///
/// Fails when the number of vectors differs, or a vector is invalid; with a message for the person who
/// configured the model.
pub fn vectors(body: &[u8], count: usize) -> Result<Vec<UnitVector>, String> {
    let unreadable = |it| format!("its response can't be parsed: {it}");
    // Checked once: otherwise the parser checks each string.
    let text = std::str::from_utf8(body).map_err(|it| format!("its response can't be parsed: {it}"))?;
    let mut response = serde_json::Deserializer::from_str(text);
    let items = EmbeddingResponse(count).deserialize(&mut response).map_err(unreadable)?;
    response.end().map_err(unreadable)?;
    if items.len() != count {
        return Err(format!("it returned {} vectors for {count} texts", items.len()));
    }
    let mut vectors: Vec<Option<UnitVector>> = vec![None; count];
    for (position, item) in items.into_iter().enumerate() {
        if let Some(vector) = vectors.get_mut(item.index.unwrap_or(position)) {
            *vector = Some(UnitVector::of(&item.embedding.0).map_err(describe_bad_vector)?);
        }
    }
    let vectors: Option<Vec<UnitVector>> = vectors.into_iter().collect();
    vectors.ok_or_else(|| "its vectors are not numbered consecutively".to_owned())
}

/// Explains why a vector is invalid, for the person who configured the model.
fn describe_bad_vector(why: BadVector) -> String {
    match why {
        BadVector::Length(0) => "it returned an empty vector".to_owned(),
        BadVector::Length(_) => format!(
            "its model returns vectors of more than {DIMENSIONS} numbers: choose a model with at most that many"
        ),
        BadVector::NotFinite => "it returned a vector with numbers that are not finite".to_owned(),
        BadVector::Zero => "it returned a vector of zeros".to_owned(),
    }
}

/// The response to a request for the vectors of this many texts.
struct EmbeddingResponse(usize);

impl<'de> DeserializeSeed<'de> for EmbeddingResponse {
    type Value = Vec<EmbeddingItem>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Vec<EmbeddingItem>, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for EmbeddingResponse {
    type Value = Vec<EmbeddingItem>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("an object with a list of vectors")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Vec<EmbeddingItem>, A::Error> {
        let mut items = None;
        while let Some(name) = members.next_key::<Cow<'de, str>>()? {
            match name.as_ref() {
                "data" => items = Some(members.next_value_seed(EmbeddingItems(self.0))?),
                _ => _ = members.next_value::<IgnoredAny>()?,
            }
        }
        items.ok_or_else(|| A::Error::missing_field("data"))
    }
}

/// The maximum number of items to parse: a response may contain half a million empty ones.
struct EmbeddingItems(usize);

impl<'de> DeserializeSeed<'de> for EmbeddingItems {
    type Value = Vec<EmbeddingItem>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Vec<EmbeddingItem>, D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for EmbeddingItems {
    type Value = Vec<EmbeddingItem>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a list of vectors")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Vec<EmbeddingItem>, A::Error> {
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

/// Numbers of a vector in any encoding.
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
            return Err(E::custom("bytes that are not 32-bit floats"));
        }
        Ok(Numbers(numbers.iter().map(|it| f32::from_le_bytes(*it)).collect()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Numbers, A::Error> {
        let mut numbers = Vec::new();
        while let Some(number) = list.next_element()? {
            if numbers.len() == MAX_PARSED_NUMBERS {
                return Err(A::Error::custom("a vector that is too long"));
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

    fn read(response: &serde_json::Value, count: usize) -> Result<Vec<UnitVector>, String> {
        vectors(response.to_string().as_bytes(), count)
    }

    fn base64(numbers: &[f32]) -> String {
        STANDARD.encode(numbers.iter().flat_map(|it| it.to_le_bytes()).collect::<Vec<_>>())
    }

    #[test]
    fn vectors_are_parsed_in_both_encodings_in_order_of_index() {
        let response = json!({"object": "list", "data": [
            {"index": 1, "embedding": [3, -4]}, {"index": 0, "embedding": base64(&[0.0, 2.0])}]});
        let found = read(&response, 2).unwrap();
        assert_eq!((found[0].numbers(), found[1].numbers()), (&[0.0, 1.0][..], &[0.6, -0.8][..]));
        let unnumbered = json!({"data": [{"embedding": [1]}, {"embedding": [0, 2]}]});
        assert_eq!(read(&unnumbered, 2).unwrap()[1].numbers(), [0.0, 1.0]);
    }

    #[test]
    fn invalid_embedding_response_is_explained() {
        for (response, count, expected) in [
            (json!({"data": []}), 1, "0 vectors for 1 texts"),
            (json!({"data": vec![json!({"embedding": []}); 100_000]}), 2, "more than 2 vectors"),
            (json!({"data": {"0": 1}}), 1, "can't be parsed"),
            (
                json!({"data": [{"index": 0, "embedding": [1]}, {"index": 0, "embedding": [1]}]}),
                2,
                "numbered",
            ),
            (json!({"data": [{"index": 7, "embedding": [1]}]}), 1, "numbered"),
            (json!({"data": [{"embedding": vec![1; DIMENSIONS + 1]}]}), 1, "more than 1536"),
            (json!({"data": [{"embedding": vec![1; MAX_PARSED_NUMBERS + 1]}]}), 1, "too long"),
            (json!({"data": [{"embedding": [0.0, 0]}]}), 1, "of zeros"),
            (json!({"data": [{"embedding": []}]}), 1, "an empty vector"),
            (json!({"data": [{"embedding": base64(&[f32::NAN])}]}), 1, "not finite"),
            (json!({"data": [{"embedding": base64(&[f32::INFINITY])}]}), 1, "not finite"),
            (json!({"data": [{"embedding": "AAA="}]}), 1, "not 32-bit floats"),
            (json!({"data": [{"embedding": [1, null]}]}), 1, "can't be parsed"),
            (json!({"data": [{"embedding": [1e300]}]}), 1, "can't be parsed"),
            (json!({"vectors": 1}), 1, "can't be parsed"),
        ] {
            let message = read(&response, count).unwrap_err();
            assert!(message.contains(expected), "{message}");
        }
        assert!(vectors(b"{\"data\":[{\"embedding\":[NaN]}]}", 1).is_err());
    }
}
