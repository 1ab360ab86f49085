// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// All that has happened upstream.
package struct Record: Sendable {
    /// Every request that was answered, in the order of the answers.
    package var transcript: [Entry] = []
    /// The answers that arrived, by security check; looked at or not. Also `basic` and `form`, for passwords that arrived there.
    package var answers: [String: [JSON]] = [:]
    /// How many of them were wrong.
    package var wrongAnswers: [String: Int] = [:]
    /// How many of them were right.
    package var logins: [String: Int] = [:]
    /// The challenges issued, by security check.
    package var challenges: [String: Int] = [:]
    /// How many clients were registered (not updated).
    package var registrations = 0
    /// The scopes of the tokens issued.
    package var tokens: [String] = []
    /// The logouts, by security check.
    package var logouts: [String] = []
    /// The requests that reached a resource, past all security.
    package var hits: [Hit] = []
    /// What was wrong with requests, in words: any of these in a test is a fault of the client.
    package var violations: [String] = []
    /// How many connections were accepted.
    package var connections = 0
    /// How often the peer left in the middle of a request.
    package var unfinishedRequests = 0
    /// How often the peer left before its answer was out.
    package var abandonedAnswers = 0
    /// The largest number of requests in work at once, by path and, under `*`, in all.
    package var maxConcurrent: [String: Int] = [:]

    /// A request and the status of its answer.
    package struct Entry: Sendable, Equatable {
        /// The method.
        package var method: String
        /// The path, without the query.
        package var path: String
        /// The status of the answer.
        package var status: Int
    }

    /// A request as a resource got it.
    package struct Hit: Sendable, Equatable {
        /// The method.
        package var method: String
        /// The path, without the query.
        package var path: String
        /// The size of the body in bytes.
        package var size: Int
        /// The SHA-256 of the body, in hexadecimal digits.
        package var digest: String
    }

    /// The number of answers that arrived, to one check or to all: what counts towards a lockout.
    package func answerCount(to check: String? = nil) -> Int {
        check.map { answers[$0]?.count ?? 0 } ?? answers.values.reduce(0) { $0 + $1.count }
    }

    /// The number of requests that were answered at that path, with any or with that status.
    package func count(_ method: String? = nil, _ path: String, status: Int? = nil) -> Int {
        transcript.count { entry in
            entry.path == path && (method ?? entry.method) == entry.method && (status ?? entry.status) == entry.status
        }
    }
}
