//! Recorded requests.

use std::{
    io::{BufRead, BufReader, Read},
    net::TcpStream,
};

/// A recorded request.
#[derive(Clone, Debug, Default)]
pub struct StubRequest {
    /// The request line and the headers as sent.
    pub head: String,
    /// The method, such as `GET`.
    pub method: String,
    /// The path without the query.
    pub path: String,
    /// The query as sent, without the question mark.
    pub query: String,
    /// The body.
    pub body: String,
}

impl StubRequest {
    /// Reads a request. One that is not HTTP, such as the greeting of TLS, has an empty path.
    pub(crate) fn read(stream: &mut TcpStream) -> Self {
        let mut reader = BufReader::new(stream);
        let mut request = Self::default();
        // The empty line after the head has two bytes.
        while reader.read_line(&mut request.head).unwrap_or_default() > 2 {}
        let line = request.head.lines().next().unwrap_or_default();
        let mut words = line.split(' ');
        let (method, target) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let (method, path, query) = (method.to_owned(), path.to_owned(), query.to_owned());
        let length = request.header("content-length").map_or(0, |it| it.parse().unwrap());
        let mut body = vec![0; length];
        reader.read_exact(&mut body).unwrap();
        Self { method, path, query, body: String::from_utf8_lossy(&body).into_owned(), ..request }
    }

    /// Returns the value of a header.
    pub fn header(&self, name: &str) -> Option<&str> {
        let mut headers = self.head.lines().skip(1).filter_map(|it| it.split_once(':'));
        headers.find(|(it, _)| it.eq_ignore_ascii_case(name)).map(|(_, value)| value.trim())
    }
}
