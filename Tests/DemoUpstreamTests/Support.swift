// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeHandling
import Crypto
import DemoUpstream
import Synchronization

extension DemoResponse {
    /// Body as text, if it is in memory.
    var text: String {
        if case .bytes(let bytes) = body { String(decoding: bytes, as: UTF8.self) } else { "" }
    }

    /// Body as JSON, or `nil`.
    var json: JSONValue? { JSONValue(parsing: Array(text.utf8)) }
}

/// Returns name and value of the cookie that a response sets.
func cookie(_ response: DemoResponse) -> String? {
    response.field("Set-Cookie")?.split(separator: ";").first.map(String.init)
}

/// Returns the SHA-256 of `text` in hexadecimal digits.
func sha256(_ text: String) -> String {
    SHA256.hash(data: Array(text.utf8)).map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
}

/// A clock that the test moves.
final class TestClock: Sendable {
    private let milliseconds = Mutex<Int64>(1_469_000_000_000)

    var now: Int64 { milliseconds.withLock { $0 } }

    func pass(seconds: Int64) { milliseconds.withLock { $0 += seconds * 1000 } }
}
