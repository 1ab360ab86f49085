// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Basics
internal import ChallengeHandling
internal import Crypto

/// Resources of the areas.
enum Samples {
    /// Returns the received request without secrets: method, path, query, fields, size and digest of the body.
    static func echo(_ request: DemoRequest) -> DemoResponse {
        let fields = request.fields.map { field -> JSONValue in
            let isSecret = ["authorization", "cookie"].contains(field.name.lowercased())
            return [field.name: .string(isSecret ? "<present>" : field.value)]
        }
        return .json(
            200,
            [
                "method": .string(request.method), "path": .string(request.path), "query": .string(request.query),
                "fields": .array(fields), "size": .integer(Int64(request.body.count)),
                "sha256": .string(sha256(request.body)),
            ])
    }

    /// Returns server-sent events: a number of `lines`, `pause` milliseconds apart.
    static func stream(_ request: DemoRequest) -> DemoResponse {
        func number(_ name: String, default value: Int, atMost limit: Int) -> Int {
            min(max(request.queryValue(name).flatMap { Int($0) } ?? value, 1), limit)
        }
        return DemoResponse(
            200, fields: [("Content-Type", "text/event-stream"), ("Cache-Control", "no-cache")],
            body: .ticks(
                count: number("lines", default: 5, atMost: 1_000_000),
                pause: number("pause", default: 200, atMost: 60_000)))
    }

    /// Returns the SHA-256 digest in hexadecimal digits.
    static func sha256(_ bytes: some Collection<UInt8>) -> String { Hex.encode(SHA256.hash(data: Array(bytes))) }

    /// Returns an unpredictable name.
    static func randomName() -> String {
        var generator = SystemRandomNumberGenerator()
        return Hex.encode((0..<16).map { _ in UInt8.random(in: 0...255, using: &generator) })
    }
}
