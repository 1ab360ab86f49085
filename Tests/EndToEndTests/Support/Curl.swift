// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import FakeServers
internal import Synchronization

/// The answer that the real `curl` received.
struct Curl: Sendable {
    /// The exit code of curl: 0, or 18, 52, 56 … if the connection broke.
    var exit: Int32
    /// The status; 0 without a response.
    var status: Int
    /// The fields of the last response, names in lower case.
    var fields: [(name: String, value: String)]
    /// The body.
    var body: [UInt8]
    /// The error messages of curl.
    var errors: String

    /// The body as text.
    var text: String { String(decoding: body, as: UTF8.self) }
    /// The body as JSON.
    var json: JSON? { JSON(parsing: body) }
    /// The `code` of a problem document; `nil` if the answer is not one.
    var code: String? {
        field("content-type") == "application/problem+json" ? json?["code"]?.string : nil
    }
    /// The `detail` of a problem document.
    var detail: String { json?["detail"]?.string ?? "" }

    /// The beginning of the answer, for a message.
    var summary: String { "curl \(exit) \(errors)\(status) \(String(decoding: body.prefix(600), as: UTF8.self))" }

    /// Returns the value of a field.
    func field(_ name: String) -> String? { fields.first { $0.name == name }?.value }

    private static let last = Mutex(0)

    /// Runs curl with those arguments, its files in that folder.
    static func run(_ arguments: [String], in folder: Folder) async throws -> Curl {
        let number = last.withLock { last in
            last += 1
            return last
        }
        let (head, body) = (folder.path(of: "curl\(number).head"), folder.path(of: "curl\(number).body"))
        let command = try await Command.run(
            [
                "/usr/bin/curl", "-q", "-sS", "--noproxy", "*", "--max-time", "200", "-D", head, "-o", body,
                "-w", "%{http_code}",
            ] + arguments, in: folder)
        return Curl(
            exit: command.exit, status: Int(command.output) ?? 0,
            fields: parse(String(decoding: readFile(head), as: UTF8.self)), body: readFile(body),
            errors: command.errors)
    }

    /// Parses the fields of the last head in a file of heads (curl keeps those of 100 too).
    private static func parse(_ heads: String) -> [(name: String, value: String)] {
        var fields: [(name: String, value: String)] = []
        for line in heads.split(separator: "\r\n", omittingEmptySubsequences: true) {
            if line.hasPrefix("HTTP/") {
                fields = []
            } else if let colon = line.firstIndex(of: ":") {
                let value = line[line.index(after: colon)...].drop { $0 == " " }
                fields.append((line[..<colon].lowercased(), String(value)))
            }
        }
        return fields
    }
}
