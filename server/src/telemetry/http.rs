//! Metrics of requests and connections.

use std::{
    collections::HashMap,
    sync::{
        OnceLock,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::Instant,
};

use prometheus_client::{
    encoding::EncodeLabelSet,
    metrics::{counter::Counter, family::Family, gauge::Gauge, histogram::Histogram},
    registry::{Registry, Unit},
};

/// Upper bounds of the duration buckets, in seconds.
const DURATION_BUCKETS: [f64; 7] = [0.001, 0.005, 0.025, 0.1, 0.5, 2.5, 10.0];

/// An endpoint as in the route table: a path template with `{name}` for parameters, never a requested
/// path.
#[derive(Clone, Copy, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
pub struct EndpointName {
    /// The method.
    pub method: &'static str,
    /// The template of the path.
    pub route: &'static str,
}

/// Requests outside of the route table: documentation pages, unknown paths and methods.
const OTHER_ROUTES: EndpointName = EndpointName { method: "", route: "other" };

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct HttpRequestLabels {
    method: &'static str,
    route: &'static str,
    status: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct HttpErrorLabels {
    method: &'static str,
    route: &'static str,
    code: &'static str,
}

type Durations = Family<EndpointName, Histogram, fn() -> Histogram>;

/// Metrics of requests and connections.
#[derive(Debug)]
pub struct HttpMetrics {
    endpoints: HashMap<&'static str, Vec<EndpointMetrics>>,
    other_routes: EndpointMetrics,
    responses: Family<HttpRequestLabels, Counter>,
    seconds: Durations,
    errors: Family<HttpErrorLabels, Counter>,
    in_flight: Gauge,
    /// Number of requests to the API.
    api_requests: AtomicU64,
    /// Open connections.
    pub connections: Gauge,
    /// Connections rejected because too many were open.
    pub rejected_connections: Counter,
}

/// The metrics of one endpoint, looked up once.
#[derive(Debug)]
struct EndpointMetrics {
    name: EndpointName,
    responses: [OnceLock<Counter>; STATUS_CLASSES.len()],
    seconds: OnceLock<Histogram>,
}

/// Classes of status codes.
const STATUS_CLASSES: [&str; 5] = ["1xx", "2xx", "3xx", "4xx", "5xx"];

impl HttpMetrics {
    pub(super) fn new(registry: &mut Registry, names: impl Iterator<Item = EndpointName>) -> Self {
        let mut endpoints: HashMap<_, Vec<_>> = HashMap::new();
        for name in names {
            endpoints.entry(name.route).or_default().push(EndpointMetrics::new(name));
        }
        let http = Self {
            endpoints,
            other_routes: EndpointMetrics::new(OTHER_ROUTES),
            responses: Family::default(),
            seconds: Family::new_with_constructor(|| Histogram::new(DURATION_BUCKETS)),
            errors: Family::default(),
            in_flight: Gauge::default(),
            api_requests: AtomicU64::new(0),
            connections: Gauge::default(),
            rejected_connections: Counter::default(),
        };
        registry.register("loupe_http_requests", "Requests answered", http.responses.clone());
        let text = "Time to the head of the response";
        registry.register_with_unit("loupe_http_request_duration", text, Unit::Seconds, http.seconds.clone());
        registry.register("loupe_http_errors", "Error responses, by error code", http.errors.clone());
        registry.register("loupe_http_requests_in_flight", "Requests in progress", http.in_flight.clone());
        registry.register("loupe_http_connections", "Open connections", http.connections.clone());
        let text = "Connections rejected because too many were open";
        registry.register("loupe_http_connections_refused", text, http.rejected_connections.clone());
        http
    }

    /// Returns the number of requests to the API since the start.
    pub fn api_requests(&self) -> u64 {
        self.api_requests.load(Relaxed)
    }

    /// Counts a request from here until the value is dropped or [`RequestTimer::finish`] is called.
    /// `route` is the template of the path.
    pub fn start_request(&self, method: &str, route: Option<&str>) -> RequestTimer<'_> {
        let endpoint = route.and_then(|it| self.endpoints.get(it));
        // GET routes also respond to HEAD.
        let method = if method == "HEAD" { "GET" } else { method };
        let endpoint = endpoint.and_then(|it| it.iter().find(|it| it.name.method == method));
        self.in_flight.inc();
        // Health checks and scrapes are not counted, because they never stop.
        if route.is_some_and(|it| it.starts_with("/v1/")) {
            self.api_requests.fetch_add(1, Relaxed);
        }
        RequestTimer { http: self, endpoint: endpoint.unwrap_or(&self.other_routes), began: Instant::now() }
    }
}

impl EndpointMetrics {
    fn new(name: EndpointName) -> Self {
        Self { name, responses: Default::default(), seconds: OnceLock::new() }
    }
}

/// A request in progress.
#[derive(Debug)]
pub struct RequestTimer<'a> {
    http: &'a HttpMetrics,
    endpoint: &'a EndpointMetrics,
    began: Instant,
}

impl RequestTimer<'_> {
    /// Records the response: the status, and the error code.
    pub fn finish(self, status: u16, code: Option<&'static str>) {
        let EndpointMetrics { name: EndpointName { method, route }, responses, seconds } = self.endpoint;
        let class = usize::from(status / 100).clamp(1, STATUS_CLASSES.len()) - 1;
        responses[class]
            .get_or_init(|| {
                self.http.responses.get_or_create_owned(&HttpRequestLabels {
                    method,
                    route,
                    status: STATUS_CLASSES[class],
                })
            })
            .inc();
        seconds
            .get_or_init(|| self.http.seconds.get_or_create_owned(&self.endpoint.name))
            .observe(self.began.elapsed().as_secs_f64());
        if let Some(code) = code {
            self.http.errors.get_or_create_owned(&HttpErrorLabels { method, route, code }).inc();
        }
    }
}

impl Drop for RequestTimer<'_> {
    fn drop(&mut self) {
        self.http.in_flight.dec();
    }
}
