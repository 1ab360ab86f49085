// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// A response, and how it is to be delivered: whole, late, cut off or not at all.
package struct FakeResponse: Sendable {
    /// The status code.
    package var status: Int
    /// The fields in order; `Date`, `Content-Length` and `Transfer-Encoding` are added when it is written.
    package var fields: [(name: String, value: String)]
    /// The body.
    package var body: Body
    /// How it goes out.
    package var delivery = Delivery()

    /// What a response carries.
    package enum Body: Sendable {
        /// Bytes of known length, sent with `Content-Length`.
        case bytes([UInt8])
        /// Pieces, each with the time to wait before it, sent as chunks.
        case chunks([Piece])
        /// So many bytes of the alphabet, over and over, with `Content-Length`; made while they are sent.
        case generated(count: Int)
        /// These bytes in place of the whole response, head included; the connection then closes.
        case raw([UInt8])
        /// Bytes that end where the connection ends, without a length.
        case untilClose([UInt8])
    }

    /// A part of a body and the time before it.
    package struct Piece: Sendable {
        /// The bytes.
        package var bytes: [UInt8]
        /// How long the server waits before it sends them.
        package var delay: Duration

        /// A piece of UTF-8 text.
        package init(_ text: String, after delay: Duration = .zero) {
            self.bytes = Array(text.utf8)
            self.delay = delay
        }
    }

    /// How a response goes out.
    package struct Delivery: Sendable {
        /// How long the server waits before the first byte.
        package var delay: Duration = .zero
        /// Whether nothing is sent and the connection stays open until the peer leaves.
        package var hangs = false
        /// The number of bytes, head included, after which the connection is cut.
        package var cutsAfter: Int?
        /// Whether the cut is a reset and not an orderly end.
        package var resets = false
        /// Whether the connection closes after the response, which then says so.
        package var closes = false

        /// A whole response, at once.
        package init() {}
    }

    /// A response with those bytes.
    package init(_ status: Int, fields: [(name: String, value: String)] = [], body: [UInt8] = []) {
        self.status = status
        self.fields = fields
        self.body = .bytes(body)
    }

    /// A response with a JSON body.
    package static func json(
        _ status: Int, _ value: JSON, fields: [(name: String, value: String)] = []
    ) -> FakeResponse {
        FakeResponse(status, fields: [("Content-Type", "application/json;charset=UTF-8")] + fields, body: value.bytes)
    }

    /// A response with a page.
    package static func html(
        _ status: Int, _ page: String, fields: [(name: String, value: String)] = []
    ) -> FakeResponse {
        FakeResponse(status, fields: [("Content-Type", "text/html;charset=UTF-8")] + fields, body: Array(page.utf8))
    }

    /// A response in plain text.
    package static func text(
        _ status: Int, _ text: String, fields: [(name: String, value: String)] = []
    ) -> FakeResponse {
        FakeResponse(status, fields: [("Content-Type", "text/plain;charset=UTF-8")] + fields, body: Array(text.utf8))
    }

    /// The value of that field, without regard to case; several are joined with commas.
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

    /// The body as JSON, where it is that.
    package var json: JSON? { JSON(parsing: bytes) }

    /// The body as text.
    package var text: String { String(decoding: bytes, as: UTF8.self) }
}
