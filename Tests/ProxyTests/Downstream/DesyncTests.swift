// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import Synchronization
import TestSupport
import Testing

@Suite("Requests that servers read in more than one way")
struct DesyncTests {
    /// A request of the table as bytes.
    private struct Request {
        let verdict: String
        let text: String
        let bytes: [UInt8]

        init(_ row: [String]) {
            verdict = row[0]
            text = row.joined(separator: " ⏎ ")
            var bytes: [UInt8] = []
            for line in row.dropFirst() + ["Host: localhost", "Connection: close"] {
                bytes += Self.unescape(line) + Array("\r\n".utf8)
            }
            self.bytes = bytes + Array("\r\n".utf8)
        }

        /// Body that the fields announce, if every reading is the same.
        var body: [UInt8] {
            guard verdict == "compliant" else { return [] }
            if text.contains("⏎ Transfer-Encoding: chunked") { return Array("2\r\nok\r\n0\r\n\r\n".utf8) }
            let length = text.split(separator: "Content-Length: ").dropFirst().first.flatMap {
                Int($0.prefix(while: \.isNumber))
            }
            return [UInt8](repeating: UInt8(ascii: "x"), count: length ?? 0)
        }

        private static func unescape(_ text: String) -> [UInt8] {
            var bytes: [UInt8] = []
            var rest = Array(text.utf8)[...]
            while let byte = rest.popFirst() {
                guard byte == UInt8(ascii: "\\"), let kind = rest.popFirst() else {
                    bytes.append(byte)
                    continue
                }
                guard kind == UInt8(ascii: "x") else {
                    bytes.append(kind)
                    continue
                }
                bytes.append(UInt8(String(decoding: rest.prefix(2), as: UTF8.self), radix: 16) ?? 0)
                rest = rest.dropFirst(2)
            }
            return bytes
        }
    }

    /// Outcome of a request: the first line of the answer, and the heads that reached the upstream.
    private struct Outcome {
        var status: String
        var heads: [String]
        var isRefused: Bool { status.hasPrefix("HTTP/1.1 4") || status.hasPrefix("HTTP/1.1 5") }
    }

    /// Sends each request of that verdict on its own connection, half-closes it, and reads until the end.
    private func outcomes(_ verdict: String) throws -> [(request: Request, outcome: Outcome)] {
        let heads = Mutex<[String]>([])
        let upstream = try AnsweringUpstream { head, _ in
            heads.withLock { $0.append(head) }
            return answer("200 OK", "ok")
        }
        let proxy = try TestProxy(.bank(port: upstream.port))
        return try JudgeTable("desync").rows.map(Request.init).filter { $0.verdict == verdict }.map { request in
            heads.withLock { $0 = [] }
            let caller = try proxy.connect()
            try caller.send(request.bytes + request.body)
            caller.finish()
            let all = try caller.readAll() ?? ""
            let status = all.split(separator: "\r\n").first.map(String.init) ?? ""
            return (request, Outcome(status: status, heads: heads.withLock { $0 }))
        }
    }

    /// Returns the names of a head's fields that a server could read as framing fields.
    private func framing(_ head: String) -> [String] {
        head.split(separator: "\r\n").dropFirst().map { $0.split(separator: ":")[0].lowercased() }.filter { name in
            // CGI and similar interfaces read `_` as `-`.
            ["transfer-encoding", "content-length"].contains(name.replacing("_", with: "-"))
        }
    }

    @Test("an ambiguous request is refused, or forwarded in one reading only", arguments: ["severe", "ambiguous"])
    func dangerous(verdict: String) throws {
        for (request, outcome) in try outcomes(verdict) {
            guard !outcome.isRefused || !outcome.heads.isEmpty else { continue }
            #expect(outcome.heads.count <= 1, "\(request.text): \(outcome)")
            for head in outcome.heads {
                let framing = framing(head)
                #expect(framing.count <= 1, "\(request.text): \(head)")
                #expect(
                    framing.allSatisfy { ["content-length", "transfer-encoding"].contains($0) },
                    "\(request.text): \(head)")
                #expect(!head.contains("\0") && !head.replacing("\r\n", with: "").contains { "\r\n".contains($0) })
            }
        }
    }

    @Test("a request with ambiguous framing is refused")
    func severe() throws {
        for (request, outcome) in try outcomes("severe") {
            #expect(outcome.isRefused && outcome.heads.isEmpty, "\(request.text): \(outcome)")
        }
    }

    @Test(
        "unambiguous requests are forwarded, except those with codings of whole bodies or odd targets"
    )
    func compliant() throws {
        for (request, outcome) in try outcomes("compliant") {
            let isCoded = ["gzip", "deflate", "chunked;"].contains { request.text.contains($0) }
            let isOddTarget = ["GET  ", "GET /\\x", "/user:"].contains { request.text.contains($0) }
            let expected = isCoded || isOddTarget ? ["400", "501"] : ["200"]
            #expect(expected.contains { outcome.status.hasPrefix("HTTP/1.1 \($0) ") }, "\(request.text): \(outcome)")
            #expect(outcome.heads.count == (expected == ["200"] ? 1 : 0), "\(request.text): \(outcome)")
        }
    }
}
