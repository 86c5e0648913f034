//! A client of gRPC that sends any frames, so that tests can also send what stock clients do not.

#![allow(clippy::unwrap_used, reason = "a test whose server can't be reached fails")]
#![allow(clippy::disallowed_methods, reason = "the connection runs beside the test")]

use std::net::SocketAddr;

use axum::{
    body::{Body, Bytes},
    http::{HeaderMap, Request},
};
use http_body_util::BodyExt;
use hyper::client::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::net::TcpStream;

/// The method that receives spans.
pub const EXPORT_TRACES: &str = "/opentelemetry.proto.collector.trace.v1.TraceService/Export";

/// A connection.
#[derive(Clone)]
pub struct GrpcClient {
    address: SocketAddr,
    sender: http2::SendRequest<Body>,
}

/// The result of a call.
#[derive(Debug)]
pub struct GrpcReply {
    /// The HTTP status.
    pub http_status: u16,
    /// The code of the status of gRPC.
    pub code: i32,
    /// The message of the status, percent-encoded.
    pub message: String,
    /// The headers, and the trailers after a message.
    pub headers: HeaderMap,
    /// The message without its prefix; none if the call failed.
    pub body: Option<Bytes>,
}

impl GrpcClient {
    /// Connects to a server.
    pub async fn connect(address: SocketAddr) -> Self {
        let socket = TokioIo::new(TcpStream::connect(address).await.unwrap());
        let (sender, connection) = http2::handshake(TokioExecutor::new(), socket).await.unwrap();
        tokio::spawn(connection);
        Self { address, sender }
    }

    /// Calls [`EXPORT_TRACES`] with a message and a token.
    pub async fn export(&self, token: &str, message: &[u8]) -> GrpcReply {
        let token = format!("Bearer {token}");
        self.call(EXPORT_TRACES, &[("authorization", &token)], framed(0, message)).await
    }

    /// Calls a method with these metadata and this body.
    pub async fn call(&self, method: &str, metadata: &[(&str, &str)], body: impl Into<Body>) -> GrpcReply {
        let typed = [("content-type", "application/grpc"), ("te", "trailers")];
        self.post(method, &[&typed, metadata].concat(), body).await
    }

    /// Sends a POST request with these headers and this body.
    pub async fn post(&self, path: &str, headers: &[(&str, &str)], body: impl Into<Body>) -> GrpcReply {
        let request = Request::post(format!("http://{}{path}", self.address));
        let request = headers.iter().fold(request, |it, (name, value)| it.header(*name, *value));
        self.send(request.body(body.into()).unwrap()).await.unwrap()
    }

    /// Sends a request.
    ///
    /// # Errors
    ///
    /// Fails when the server resets the request.
    pub async fn send(&self, request: Request<Body>) -> Result<GrpcReply, hyper::Error> {
        let response = self.sender.clone().send_request(request).await?;
        let (http_status, mut headers) = (response.status().as_u16(), response.headers().clone());
        let collected = response.into_body().collect().await?;
        headers.extend(collected.trailers().cloned().unwrap_or_default());
        let bytes = collected.to_bytes();
        let text = |name: &str| headers.get(name).map(|it| it.to_str().unwrap().to_owned());
        Ok(GrpcReply {
            http_status,
            code: text("grpc-status").map_or(-1, |it| it.parse().unwrap()),
            message: text("grpc-message").unwrap_or_default(),
            body: (!bytes.is_empty()).then(|| bytes.slice(5..)),
            headers,
        })
    }
}

/// Returns a message after its prefix; `flag` says whether it is compressed.
pub fn framed(flag: u8, message: &[u8]) -> Vec<u8> {
    let length = u32::try_from(message.len()).unwrap().to_be_bytes();
    [&[flag][..], &length, message].concat()
}
