// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import ChallengeHandling

/// A response.
package struct DemoResponse: Sendable {
    /// The status code.
    package let status: Int
    /// The fields in order; those of the connection and of the body's length are added when it is written.
    package let fields: [(name: String, value: String)]
    /// Its content.
    package let body: Body

    /// The content of a response.
    package enum Body: Sendable {
        /// Bytes, sent at once.
        case bytes([UInt8])
        /// So many server-sent events, that many milliseconds apart.
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

    /// 401, and what is demanded.
    static func unauthorized(_ challenge: String) -> DemoResponse {
        DemoResponse(
            401, fields: [("WWW-Authenticate", challenge), ("Content-Type", "text/plain;charset=UTF-8")],
            body: .bytes(Array("Please say who you are.\n".utf8)))
    }

    /// The value of the first field of that name, without regard to case.
    package func field(_ name: String) -> String? {
        fields.first { $0.name.lowercased() == name.lowercased() }?.value
    }
}
