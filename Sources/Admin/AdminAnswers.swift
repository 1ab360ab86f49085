// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import ChallengeHandling
internal import Proxy

extension LocalAnswer {
    static func json(status: Int, _ value: JSONValue) -> LocalAnswer {
        LocalAnswer(
            status: status, contentType: "application/json", body: value.serialized() + [UInt8(ascii: "\n")])
    }
}

extension LocalRequest {
    /// Whether the query has that name, with a value or without.
    func has(_ name: String) -> Bool { value(of: name) != nil }

    /// The first value of that name in the query.
    func value(of name: String) -> String? { values(of: name).first }

    /// The values of that name in the query. Names as they came, for ours need no escapes; of values `%2F` and its like undone.
    func values(of name: String) -> [String] {
        query.split(separator: "&").compactMap { pair in
            let parts = pair.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            guard parts.first.map(String.init) == name else { return nil }
            return parts.count > 1 ? parts[1].unescaped : ""
        }
    }
}

extension Substring {
    /// With its percent-encoded bytes decoded (RFC 3986 section 2.1); what is none stays as it is.
    fileprivate var unescaped: String {
        guard utf8.contains(UInt8(ascii: "%")) else { return String(self) }
        var bytes: [UInt8] = []
        var rest = Array(utf8)[...]
        while let byte = rest.popFirst() {
            if byte == UInt8(ascii: "%"), rest.count >= 2,
                let code = UInt8(String(decoding: rest.prefix(2), as: UTF8.self), radix: 16)
            {
                bytes.append(code)
                rest = rest.dropFirst(2)
            } else {
                bytes.append(byte)
            }
        }
        return TextRuns.broken(String(decoding: bytes, as: UTF8.self))
    }
}
