//! The exit codes: one table that the programs, the help page and the tests share.

use std::process::ExitCode;

use api::client::ApiError;

macro_rules! exits {
    ($($(#[$meta:meta])* $variant:ident = $code:literal, $meaning:literal);+ $(;)?) => {
        /// How the program ended.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Exit { $($(#[$meta])* $variant),+ }

        impl Exit {
            /// Every way to end, by number.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// The number that the shell sees.
            pub const fn code(self) -> u8 {
                match self { $(Self::$variant => $code),+ }
            }

            /// What it means, for the help page.
            pub const fn meaning(self) -> &'static str {
                match self { $(Self::$variant => $meaning),+ }
            }
        }
    };
}

exits! {
    /// Success.
    Done = 0, "done; also an empty list, a pipe closed by its reader, --dry-run";
    /// A bug, the disk, the output.
    Unexpected = 1, "unexpected: a bug, the disk, the output";
    /// The command line is wrong.
    Usage = 2, "wrong use: flags, a filter, an invalid address, a question without a terminal to ask it on";
    /// A question was answered with no.
    Declined = 3, "you answered no";
    /// No valid credential.
    Unauthenticated = 4, "not authenticated: no credential, an expired one or one of the wrong kind (401)";
    /// No answer.
    Unreachable = 5, "the server could not be reached: name, connection, TLS, time";
    /// The thing tested is not good.
    Failed = 6, "the command ran, and what it tested is not good";
    /// Waited long enough.
    TimedOut = 7, "waited long enough: --for ended first";
    /// Role, scope or tenant.
    Forbidden = 8, "forbidden: role, scope or tenant (403)";
    /// The project takes no traces.
    Archived = 9, "the project is archived (403 error.project.archived)";
    /// Plan or quota.
    Plan = 10, "plan or quota (402)";
    /// No such thing.
    NotFound = 11, "not found (404)";
    /// It is in the way of something else.
    Conflict = 12, "conflict (409)";
    /// The values are not taken.
    Refused = 13, "the server refused the values (400, 413, 415, 422)";
    /// Too many requests.
    RateLimited = 14, "rate limited, and the tries are used up (429)";
    /// The server's fault.
    ServerFault = 15, "a fault of the server, and the tries are used up (5xx)";
    /// An evaluator could not judge.
    Unjudged = 16, "an evaluation ended `failed`: there is no score to go by";
    /// Ctrl-C.
    Interrupted = 130, "Ctrl-C; also the normal end of `traces tail`";
    /// SIGTERM.
    Terminated = 143, "SIGTERM";
}

impl Exit {
    /// What an answer that is not a success ends with.
    pub fn of_answer(answer: &ApiError) -> Self {
        match (answer.status, answer.code.as_str()) {
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
    fn statuses_have_their_codes() {
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
            let answer = ApiError::new(status, &Default::default(), body.as_bytes());
            assert_eq!(Exit::of_answer(&answer).code(), exit, "{status} {code}");
        }
    }
}
