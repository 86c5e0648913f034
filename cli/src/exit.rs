//! The exit codes: one table that the programs, the help page and the tests share.

use std::process::ExitCode;

use api::client::ApiError;

macro_rules! exits {
    ($($(#[$meta:meta])* $variant:ident = $code:literal, $meaning:literal);+ $(;)?) => {
        /// Exit status of the program.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Exit { $($(#[$meta])* $variant),+ }

        impl Exit {
            /// Every exit status, sorted by code.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// Returns the exit code.
            pub const fn code(self) -> u8 {
                match self { $(Self::$variant => $code),+ }
            }

            /// Returns the meaning that `loupe help exit-codes` prints.
            pub const fn meaning(self) -> &'static str {
                match self { $(Self::$variant => $meaning),+ }
            }
        }
    };
}

exits! {
    /// Success.
    Success = 0, "success; also an empty list, a pipe closed by its reader, --dry-run";
    /// A bug, or a failure to read or write files or the output.
    Unexpected = 1, "unexpected error: a bug, or a file or the output can't be read or written";
    /// The command line is invalid.
    Usage = 2, "invalid command line: flags, a filter, an address, or a prompt without a terminal";
    /// The user declined a confirmation.
    Declined = 3, "you answered no";
    /// There is no valid credential.
    Unauthenticated = 4, "not authenticated: no credential, an expired one or one of the wrong kind (401)";
    /// The server did not respond.
    Unreachable = 5, "the server could not be reached: name, connection, TLS, time";
    /// A check of the command found a problem.
    Failed = 6, "the command ran, and its check found a problem";
    /// The time limit of waiting has passed.
    TimedOut = 7, "the time limit --for has passed";
    /// The role, scope or tenant does not permit the request.
    Forbidden = 8, "forbidden: role, scope or tenant (403)";
    /// The project is archived and accepts no traces.
    Archived = 9, "the project is archived (403 error.project.archived)";
    /// The plan or a quota does not allow the request.
    Plan = 10, "plan or quota (402)";
    /// The requested resource does not exist.
    NotFound = 11, "not found (404)";
    /// The request conflicts with the current state.
    Conflict = 12, "conflict (409)";
    /// The server refused the values of the request.
    Refused = 13, "the server refused the values (400, 413, 415, 422)";
    /// Too many requests, after all attempts.
    RateLimited = 14, "rate limited, after all attempts (429)";
    /// A server error, after all attempts.
    ServerFault = 15, "a server error, after all attempts (5xx)";
    /// An evaluation failed and has no score.
    EvaluationFailed = 16, "an evaluation failed and has no score";
    /// Ctrl-C ended the program.
    Interrupted = 130, "Ctrl-C; also the normal end of `traces tail` and `webhooks listen`";
    /// SIGTERM ended the program.
    Terminated = 143, "SIGTERM";
}

impl Exit {
    /// Returns the exit status for an error response of the server.
    pub fn of_response(response: &ApiError) -> Self {
        match (response.status, response.code.as_str()) {
            (401, _) => Self::Unauthenticated,
            (402, _) => Self::Plan,
            (403, "error.project.archived") => Self::Archived,
            (403, "session_required") => Self::Unauthenticated,
            (403, _) => Self::Forbidden,
            (404, _) => Self::NotFound,
            (409, _) => Self::Conflict,
            (429, _) => Self::RateLimited,
            (400..=499, _) => Self::Refused,
            (500..=599, _) => Self::ServerFault,
            _ => Self::Unexpected,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit.code())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn response_statuses_map_to_exit_codes() {
        for (status, code, exit) in [
            (401, "unauthorized", 4),
            (402, "plan_upgrade_required", 10),
            (403, "forbidden_role", 8),
            (403, "session_required", 4),
            (403, "error.project.archived", 9),
            (404, "not_found", 11),
            (409, "error.project.cannot_archive_last", 12),
            (422, "validation_failed", 13),
            (429, "rate_limited", 14),
            (502, "upstream_failed", 15),
        ] {
            let body = format!("{{\"code\":\"{code}\"}}");
            let response = ApiError::new(status, &Default::default(), body.as_bytes());
            assert_eq!(Exit::of_response(&response).code(), exit, "{status} {code}");
        }
    }
}
