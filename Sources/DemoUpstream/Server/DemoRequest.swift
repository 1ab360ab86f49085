// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import ChallengeHandling
internal import HTTPWire

/// Complete request.
package struct DemoRequest: Sendable {
    /// Method, unchanged.
    package let method: String
    /// Path, unchanged and not decoded.
    package let path: String
    /// Text after the question mark, unchanged; empty without one.
    package let query: String
    /// Fields, in order.
    package let fields: [(name: String, value: String)]
    /// Body, with its chunks joined.
    package let body: [UInt8]

    /// Creates a request for a target in origin form (`/path?query`).
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

    /// Creates the request of a parsed head and a body.
    init(_ head: RequestHead, in bytes: Span<UInt8>, body: [UInt8]) {
        self.init(
            bytes.text(head.methodRange), bytes.text(head.target.pathAndQuery),
            fields: head.fields.map { (bytes.text($0.name), bytes.text($0.value)) }, body: body)
    }

    /// Path and query, unchanged.
    var target: String { query.isEmpty ? path : "\(path)?\(query)" }

    /// Returns the value of a field, ignoring case; several are joined with commas (RFC 9110 §5.3).
    func field(_ name: String) -> String? {
        let values = fields.filter { $0.name.lowercased() == name.lowercased() }.map(\.value)
        return values.isEmpty ? nil : values.joined(separator: ", ")
    }

    /// Returns the value of the first cookie of that name (RFC 6265 §5.4).
    func cookie(_ name: String) -> String? {
        let pairs = (field("Cookie") ?? "").split(separator: ";").map { pair in
            pair.drop { $0 == " " }.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
        }
        return pairs.first { $0.count == 2 && $0[0] == name }.map { String($0[1]) }
    }

    /// Returns the first value of that name in the query.
    func queryValue(_ name: String) -> String? { FormEncoding.value(of: name, in: query) }

    /// Returns the first value of that name in a form body.
    func formValue(_ name: String) -> String? {
        guard field("Content-Type")?.hasPrefix(FormEncoding.mediaType) == true else { return nil }
        return FormEncoding.value(of: name, in: String(decoding: body, as: UTF8.self))
    }

    /// Body as JSON.
    var json: JSONValue? { JSONValue(parsing: body) }

    /// Returns the text after the scheme in `Authorization`, ignoring case (RFC 9110 §11.4).
    func authorization(_ scheme: String) -> String? {
        let parts = (field("Authorization") ?? "").split(separator: " ", maxSplits: 1)
        return parts.count == 2 && parts[0].lowercased() == scheme.lowercased() ? String(parts[1]) : nil
    }

    /// User and password of `Authorization: Basic`; the user ends at the first colon (RFC 7617 §2).
    var basicCredentials: (user: String, password: String)? {
        guard let bytes = authorization("Basic").flatMap({ Base64.decode($0) }) else { return nil }
        let text = String(decoding: bytes, as: UTF8.self)
        guard let colon = text.firstIndex(of: ":") else { return nil }
        return (String(text[..<colon]), String(text[text.index(after: colon)...]))
    }
}

/// Response of the demonstration's upstream.
package struct DemoResponse: Sendable {
    /// Status code.
    package let status: Int
    /// Fields, in order, without those of the connection and of the body's length.
    package let fields: [(name: String, value: String)]
    /// Content.
    package let body: Body

    /// Content of a response.
    package enum Body: Sendable {
        /// Bytes, sent at once.
        case bytes([UInt8])
        /// Number of server-sent events, with a pause in milliseconds.
        case ticks(count: Int, pause: Int)
    }

    init(_ status: Int, fields: [(name: String, value: String)] = [], body: Body = .bytes([])) {
        self.status = status
        self.fields = fields
        self.body = body
    }

    static func json(_ status: Int, _ value: JSONValue, _ fields: [(name: String, value: String)] = []) -> DemoResponse
    {
        DemoResponse(
            status, fields: [("Content-Type", "application/json;charset=UTF-8")] + fields,
            body: .bytes(value.serialized()))
    }

    static func html(_ status: Int, _ content: String, _ fields: [(name: String, value: String)] = []) -> DemoResponse {
        let page = "<!DOCTYPE html>\n<html><head><title>Demo</title></head><body>\n\(content)\n</body></html>\n"
        return DemoResponse(
            status, fields: [("Content-Type", "text/html;charset=UTF-8")] + fields, body: .bytes(Array(page.utf8)))
    }

    static func text(_ status: Int, _ text: String) -> DemoResponse {
        DemoResponse(
            status, fields: [("Content-Type", "text/plain;charset=UTF-8")], body: .bytes(Array("\(text)\n".utf8)))
    }

    /// Returns 401 with a challenge.
    static func unauthorized(_ challenge: String) -> DemoResponse {
        DemoResponse(
            401, fields: [("WWW-Authenticate", challenge), ("Content-Type", "text/plain;charset=UTF-8")],
            body: .bytes(Array("Please log in.\n".utf8)))
    }

    /// Returns the value of the first field of that name, ignoring case.
    package func field(_ name: String) -> String? {
        fields.first { $0.name.lowercased() == name.lowercased() }?.value
    }
}
