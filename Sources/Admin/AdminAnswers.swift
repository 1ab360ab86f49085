// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import ChallengeHandling
internal import Gateway

extension LocalAnswer {
    static func text(status: Int, _ text: String) -> LocalAnswer {
        LocalAnswer(status: status, contentType: "text/plain; charset=utf-8", body: Array(text.utf8))
    }

    static func json(status: Int, _ value: JSONValue) -> LocalAnswer {
        LocalAnswer(
            status: status, contentType: "application/json", body: value.serialized() + [UInt8(ascii: "\n")])
    }
}

extension LocalRequest {
    /// Whether the query has that name, with a value or without.
    func has(_ name: String) -> Bool { value(of: name) != nil }

    /// The first value of that name in the query; names and values as they came, for ours need no escapes.
    func value(of name: String) -> String? {
        for pair in query.split(separator: "&") {
            let parts = pair.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            if parts.first.map(String.init) == name { return parts.count > 1 ? String(parts[1]) : "" }
        }
        return nil
    }
}
