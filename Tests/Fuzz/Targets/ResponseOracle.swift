// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import HTTPWire

/// Reads what a caller is sent, as RFC 9112 section 6.3 has it, and compares that with what the upstream sent.
struct ResponseOracle {
    /// Who asked.
    struct Caller {
        var isHead: Bool
        var version: HTTPVersion
        var takesTrailers: Bool
        /// Whether the proxy has sent a session of its own.
        var isOnSession: Bool
    }

    let head: ResponseHead
    let raw: [UInt8]
    /// What came behind the head.
    let body: [UInt8]
    let caller: Caller

    /// What the upstream's head holds, and what the caller's.
    private struct Heads {
        var sent: [Oracle.Field]
        var got: [Oracle.Field]

        func got(_ name: String) -> [Oracle.Field] { got.filter { $0.name == name } }
    }

    func check(_ written: WrittenResponse) throws(Violation) {
        var rest = written.output[...]
        while true {
            guard let (lines, end) = Oracle.section(rest), let status = lines.first else {
                throw Violation(description: "no head is written")
            }
            rest = rest[end...]
            var heads = Heads(sent: [], got: [])
            for line in lines.dropFirst() {
                guard let field = Oracle.field(line) else { throw Violation(description: "a line is no field") }
                heads.got.append(field)
            }
            try require(Oracle.isValue(status), "a control in the status line")
            if status.starts(with: "HTTP/1.1 1".utf8) {
                try checkInterim(heads)
                continue
            }
            try require(status.starts(with: "HTTP/1.1 \(head.status) ".utf8), "another status")
            let sent = raw.split(separator: 10).dropFirst().map { $0.last == 13 ? $0.dropLast() : $0 }
            heads.sent = sent.compactMap { Oracle.field($0) }
            try checkFields(heads, written)
            try checkBody(heads, rest, written)
            return
        }
    }

    private func checkInterim(_ heads: Heads) throws(Violation) {
        try require(caller.version == .http11, "an interim response to HTTP/1.0")
        for field in heads.got {
            try require(!Oracle.hopByHop.contains(field.name), "\(field.name) passes with an interim response")
            try require(field.name != "content-length", "an interim response with a length")
        }
    }

    /// What the upstream sent, read as RFC 9112 section 6.3 says, and whether it says itself that this is all.
    private func sentBody() -> (bytes: [UInt8], isWhole: Bool?) {
        if caller.isHead || head.status == 204 || head.status == 304 { return ([], true) }
        if head.isChunked {
            let read = ChunkOracle.read(body)
            return (read.data, read.end != nil)
        }
        guard let length = head.contentLength else { return (body, nil) }
        let count = Int(min(length, UInt64(body.count)))
        return (Array(body.prefix(count)), UInt64(count) == length)
    }

    private func checkFields(_ heads: Heads, _ written: WrittenResponse) throws(Violation) {
        let named = heads.sent.filter { $0.name == "connection" }.flatMap(\.members)
        let own: Set<String> = ["connection", "content-length", "transfer-encoding", "upgrade", "via"]
        for field in heads.got where !own.contains(field.name) {
            let isAnnouncement = field.name == "trailer" && caller.takesTrailers && caller.version == .http11
            try require(isAnnouncement || !Oracle.hopByHop.contains(field.name), "\(field.name) passes")
            try require(!named.contains(field.name), "\(field.name) passes, which Connection names")
        }
        let tells =
            !heads.got("authentication-info").isEmpty
            || !heads.got("www-authenticate").isEmpty && head.status != 401 && head.status != 403
        try require(!tells || !caller.isOnSession, "what concerns our session passes")
        // Only the answer that asks for an upgrade says to what (RFC 9110 section 15.5.22).
        try require(head.status == 426 || heads.got("upgrade").isEmpty, "Upgrade passes")
        let options = heads.got("connection").flatMap(\.members).filter { head.status != 426 || $0 != "upgrade" }
        if caller.version == .http11 {
            try require(options == (written.keepsAlive ? [] : ["close"]), "Connection: \(options) to HTTP/1.1")
        } else {
            try require(options == (written.keepsAlive ? ["keep-alive"] : ["close"]), "Connection: \(options) to 1.0")
        }
        try require(heads.got("via").last?.text.hasSuffix(" countersign") == true, "Via does not name us last")
    }

    private func checkBody(
        _ heads: Heads, _ bytes: ArraySlice<UInt8>, _ written: WrittenResponse
    ) throws(Violation) {
        let lengths = heads.got("content-length")
        let codings = heads.got("transfer-encoding")
        try require(lengths.count <= 1 && codings.count <= 1, "a length is written twice")
        try require(lengths.isEmpty || codings.isEmpty, "two lengths are written")
        try require(codings.isEmpty || codings[0].text == "chunked", "another coding")
        try require(codings.isEmpty || caller.version == .http11, "chunks to HTTP/1.0")
        if head.status == 204 { try require(lengths.isEmpty && codings.isEmpty, "204 with a length") }
        if let length = lengths.first { try require(length.number == head.contentLength, "another length") }
        let sent = sentBody()
        if let isWhole = sent.isWhole { try require(written.isWhole == isWhole, "whole or not: \(isWhole)") }
        if caller.isHead || head.status == 204 || head.status == 304 {
            try require(bytes.isEmpty, "a body where there is none")
        } else if !codings.isEmpty {
            let read = ChunkOracle.read(Array(bytes))
            try require(!read.isRefused && read.data == sent.bytes, "the chunks hold something else")
            try require(read.end == (written.isWhole ? bytes.count : nil), "the chunks end elsewhere")
            let trailers = head.isChunked && caller.takesTrailers ? ChunkOracle.read(body).trailers : []
            try require(read.trailers.allSatisfy(trailers.contains), "trailers that nobody sent, or wants")
        } else if let length = lengths.first?.number {
            try require(Array(bytes) == sent.bytes, "another body")
            try require(written.isWhole ? bytes.count == length : bytes.count < length, "the body ends elsewhere")
        } else {
            // Here the end of the connection is what ends the body.
            try require(Array(bytes) == sent.bytes && !written.keepsAlive, "an open body on a kept connection")
        }
    }
}
