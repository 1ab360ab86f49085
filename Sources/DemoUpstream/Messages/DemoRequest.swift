// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import ChallengeHandling
internal import HTTPWire

/// A complete request.
package struct DemoRequest: Sendable {
    /// The method, as it came.
    package let method: String
    /// The path, as it came (not decoded).
    package let path: String
    /// The text behind the question mark, as it came; empty without one.
    package let query: String
    /// The fields in order.
    package let fields: [(name: String, value: String)]
    /// The body, its chunks put together.
    package let body: [UInt8]

    /// A request for that target in origin form (`/path?query`).
    package init(
        _ method: String, _ target: String, fields: [(name: String, value: String)] = [], body: [UInt8] = []
    ) {
        let halves = target.split(separator: "?", maxSplits: 1, omittingEmptySubsequences: false)
        self.method = method
        path = halves.first.map(String.init) ?? ""
        query = halves.count > 1 ? String(halves[1]) : ""
        self.fields = fields
        self.body = body
    }

    /// The request that a head means, with that body.
    init(_ head: RequestHead, in bytes: Span<UInt8>, body: [UInt8]) {
        self.init(
            bytes.text(head.methodRange), bytes.text(head.target.pathAndQuery),
            fields: head.fields.map { (bytes.text($0.name), bytes.text($0.value)) }, body: body)
    }

    /// Path and query as they came.
    var target: String { query.isEmpty ? path : "\(path)?\(query)" }

    /// The value of that field, without regard to case; several are joined with commas (RFC 9110 §5.3).
    func field(_ name: String) -> String? {
        let values = fields.filter { $0.name.lowercased() == name.lowercased() }.map(\.value)
        return values.isEmpty ? nil : values.joined(separator: ", ")
    }

    /// The value of the cookie of that name, the first where there are several (RFC 6265 §5.4).
    func cookie(_ name: String) -> String? {
        let pairs = (field("Cookie") ?? "").split(separator: ";").map { pair in
            pair.drop { $0 == " " }.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
        }
        return pairs.first { $0.count == 2 && $0[0] == name }.map { String($0[1]) }
    }

    /// The first value of that name in the query.
    func queryValue(_ name: String) -> String? { FormEncoding.value(of: name, in: query) }

    /// The first value of that name in a body that is a form.
    func formValue(_ name: String) -> String? {
        guard field("Content-Type")?.hasPrefix(FormEncoding.mediaType) == true else { return nil }
        return FormEncoding.value(of: name, in: String(decoding: body, as: UTF8.self))
    }

    /// A body that is JSON.
    var json: JSONValue? { JSONValue(parsing: body) }

    /// The text behind the scheme in `Authorization`; the scheme without regard to case (RFC 9110 §11.4).
    func authorization(_ scheme: String) -> String? {
        let parts = (field("Authorization") ?? "").split(separator: " ", maxSplits: 1)
        return parts.count == 2 && parts[0].lowercased() == scheme.lowercased() ? String(parts[1]) : nil
    }

    /// User and password of `Authorization: Basic` (RFC 7617 §2: the user ends at the first colon).
    var basicCredentials: (user: String, password: String)? {
        guard let bytes = authorization("Basic").flatMap({ Base64.decode($0) }) else { return nil }
        let text = String(decoding: bytes, as: UTF8.self)
        guard let colon = text.firstIndex(of: ":") else { return nil }
        return (String(text[..<colon]), String(text[text.index(after: colon)...]))
    }
}
