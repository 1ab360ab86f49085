// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// A complete request as a server read it, or as a test made it.
package struct FakeRequest: Sendable {
    /// The method, as it came.
    package var method: String
    /// The path, as it came (not decoded).
    package var path: String
    /// The text after the question mark, as it came; `nil` without one.
    package var query: String?
    /// The fields in order, names and values as they came.
    package var fields: [(name: String, value: String)]
    /// The body, its chunks put together.
    package var body: [UInt8]
    /// The number of the connection by which it arrived; 0 without one.
    package var connection: UInt64 = 0

    /// Creates a request for that target in origin form (`/path?query`).
    package init(
        _ method: String, _ target: String, fields: [(name: String, value: String)] = [], body: [UInt8] = []
    ) {
        let halves = target.split(separator: "?", maxSplits: 1, omittingEmptySubsequences: false).map(String.init)
        self.method = method
        self.path = halves.first ?? ""
        self.query = halves.count > 1 ? halves[1] : nil
        self.fields = fields
        self.body = body
    }

    /// Path and query as they came.
    package var target: String { query.map { "\(path)?\($0)" } ?? path }

    /// Returns the value of that field, without regard to case; several are joined with commas (RFC 9110 §5.3).
    package func field(_ name: String) -> String? {
        let values = fields.filter { $0.name.lowercased() == name.lowercased() }.map(\.value)
        return values.isEmpty ? nil : values.joined(separator: ", ")
    }

    /// Returns the value of the cookie of that name, the first if there are several (RFC 6265 §5.4).
    package func cookie(_ name: String) -> String? {
        let pairs = (field("Cookie") ?? "").split(separator: ";").map { pair in
            pair.drop { $0 == " " }.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
        }
        return pairs.first { $0.count == 2 && $0[0] == name }.map { String($0[1]) }
    }

    /// The fields of the query.
    package var queryFields: FormFields { FormFields(parsing: (query ?? "").utf8) }

    /// The fields of a body that is a form; `nil` if its type is another.
    package var form: FormFields? {
        mediaType == "application/x-www-form-urlencoded" ? FormFields(parsing: body) : nil
    }

    /// The value of a body that is JSON; `nil` if its type is another, or if the body is not valid.
    package var json: JSON? { mediaType == "application/json" ? JSON(parsing: body) : nil }

    /// Returns the token of `Authorization: scheme token`; the scheme without regard to case (RFC 9110 §11.4).
    package func authorization(_ scheme: String) -> String? {
        let parts = (field("Authorization") ?? "").split(separator: " ", maxSplits: 1)
        guard parts.count == 2, parts[0].lowercased() == scheme.lowercased() else { return nil }
        return String(parts[1].drop { $0 == " " })
    }

    /// User and password of `Authorization: Basic` (RFC 7617 §2: the user ends at the first colon).
    package var basicCredentials: (user: String, password: String)? {
        guard let bytes = authorization("Basic").flatMap(Base64.decode),
            let text = String(validating: bytes, as: UTF8.self), let colon = text.firstIndex(of: ":")
        else { return nil }
        return (String(text[..<colon]), String(text[text.index(after: colon)...]))
    }

    private var mediaType: String {
        let type = (field("Content-Type") ?? "").prefix { $0 != ";" }
        return String(type.filter { $0 != " " }).lowercased()
    }
}

/// A response, and how it is to be delivered: whole, late, cut off or not at all.
package struct FakeResponse: Sendable {
    /// The status code.
    package var status: Int
    /// The fields in order; `Date`, `Content-Length` and `Transfer-Encoding` are added when it is written.
    package var fields: [(name: String, value: String)]
    /// The body.
    package var body: Body
    /// The delivery of the response.
    package var delivery = Delivery()

    /// The body of a response.
    package enum Body: Sendable {
        /// Bytes of known length, sent with `Content-Length`.
        case bytes([UInt8])
        /// Pieces, each with the time to wait before it, sent as chunks.
        case chunks([Piece])
        /// `count` bytes of the alphabet, over and over, with `Content-Length`; made while they are sent.
        case generated(count: Int)
        /// These bytes in place of the whole response, head included; the connection then closes.
        case raw([UInt8])
        /// Bytes that end with the connection, without a length.
        case untilClose([UInt8])
    }

    /// A part of a body and the time before it.
    package struct Piece: Sendable {
        /// The bytes.
        package var bytes: [UInt8]
        /// The time before the piece is sent.
        package var delay: Duration

        /// Creates a piece of UTF-8 text.
        package init(_ text: String, after delay: Duration = .zero) {
            self.bytes = Array(text.utf8)
            self.delay = delay
        }
    }

    /// The delivery of a response.
    package struct Delivery: Sendable {
        /// The time before the first byte.
        package var delay: Duration = .zero
        /// True if nothing is sent and the connection stays open until the peer leaves.
        package var hangs = false
        /// The number of bytes, head included, after which the connection is cut.
        package var cutsAfter: Int?
        /// True if the cut is a reset and not an orderly end.
        package var resets = false
        /// True if the connection closes after the response, which then has `Connection: close`.
        package var closes = false

        /// Creates a whole response, at once.
        package init() {}
    }

    /// Creates a response with those bytes.
    package init(_ status: Int, fields: [(name: String, value: String)] = [], body: [UInt8] = []) {
        self.status = status
        self.fields = fields
        self.body = .bytes(body)
    }

    /// Returns a response with a JSON body.
    package static func json(
        _ status: Int, _ value: JSON, fields: [(name: String, value: String)] = []
    ) -> FakeResponse {
        FakeResponse(status, fields: [("Content-Type", "application/json;charset=UTF-8")] + fields, body: value.bytes)
    }

    /// Returns a response with a page.
    package static func html(
        _ status: Int, _ page: String, fields: [(name: String, value: String)] = []
    ) -> FakeResponse {
        FakeResponse(status, fields: [("Content-Type", "text/html;charset=UTF-8")] + fields, body: Array(page.utf8))
    }

    /// Returns a response in plain text.
    package static func text(
        _ status: Int, _ text: String, fields: [(name: String, value: String)] = []
    ) -> FakeResponse {
        FakeResponse(status, fields: [("Content-Type", "text/plain;charset=UTF-8")] + fields, body: Array(text.utf8))
    }

    /// Returns the value of that field, without regard to case; several are joined with commas.
    package func field(_ name: String) -> String? {
        let values = fields.filter { $0.name.lowercased() == name.lowercased() }.map(\.value)
        return values.isEmpty ? nil : values.joined(separator: ", ")
    }

    /// The body's bytes as far as they are held (not those generated while they are sent).
    package var bytes: [UInt8] {
        switch body {
        case .bytes(let bytes), .raw(let bytes), .untilClose(let bytes): bytes
        case .chunks(let pieces): pieces.flatMap(\.bytes)
        case .generated: []
        }
    }

    /// The body as JSON, if it is valid JSON.
    package var json: JSON? { JSON(parsing: bytes) }

    /// The body as text.
    package var text: String { String(decoding: bytes, as: UTF8.self) }
}
