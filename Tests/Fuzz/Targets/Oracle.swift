// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import HTTPWire

/// HTTP/1.1 read a second time: slowly, in the words of the RFCs, and without any line of `HTTPWire`.
enum Oracle {
    /// RFC 9110 §5.6.2.
    static func isToken(_ bytes: some Collection<UInt8>) -> Bool {
        !bytes.isEmpty && bytes.allSatisfy { isTokenByte($0) }
    }

    static func isTokenByte(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "a")...UInt8(ascii: "z"), 0x30...0x39: true
        case UInt8(ascii: "!"), UInt8(ascii: "#"), UInt8(ascii: "$"), UInt8(ascii: "%"), UInt8(ascii: "&"),
            UInt8(ascii: "'"), UInt8(ascii: "*"), UInt8(ascii: "+"), UInt8(ascii: "-"), UInt8(ascii: "."),
            UInt8(ascii: "^"), UInt8(ascii: "_"), UInt8(ascii: "`"), UInt8(ascii: "|"), UInt8(ascii: "~"):
            true
        default: false
        }
    }

    /// RFC 9110 §5.5: no controls but the tab.
    static func isValue(_ bytes: some Collection<UInt8>) -> Bool {
        bytes.allSatisfy { $0 == 9 || ($0 >= 32 && $0 != 127) }
    }

    /// Returns true if there is no white space around it.
    static func isTrimmed(_ bytes: some BidirectionalCollection<UInt8>) -> Bool {
        let blanks: [UInt8?] = [32, 9]
        return !blanks.contains(bytes.first) && !blanks.contains(bytes.last)
    }

    /// Returns the lines before the empty one that ends a head or a trailer section, and the offset after it; `nil`
    /// without an empty line. A line ends with CRLF and contains neither character.
    static func section(_ bytes: ArraySlice<UInt8>) -> (lines: [ArraySlice<UInt8>], end: Int)? {
        var lines: [ArraySlice<UInt8>] = []
        var start = bytes.startIndex
        var index = start
        while index + 1 < bytes.endIndex {
            guard bytes[index] == 13, bytes[index + 1] == 10 else {
                index += 1
                continue
            }
            if index == start { return (lines, index + 2) }
            lines.append(bytes[start..<index])
            index += 2
            start = index
        }
        return nil
    }

    /// Name in lower case and value of a line; `nil` if it follows no grammar (RFC 9112 §5).
    static func field(_ line: ArraySlice<UInt8>) -> Field? {
        guard let colon = line.firstIndex(of: UInt8(ascii: ":")) else { return nil }
        var value = line[(colon + 1)...]
        while let first = value.first, first == 32 || first == 9 { value.removeFirst() }
        while let last = value.last, last == 32 || last == 9 { value.removeLast() }
        guard isToken(line[..<colon]), isValue(value) else { return nil }
        return Field(
            name: String(decoding: line[..<colon], as: UTF8.self).lowercased(), value: Array(value),
            nameEnd: colon, valueStart: value.startIndex)
    }

    struct Field: Equatable {
        var name: String
        var value: [UInt8]
        var nameEnd: Int
        var valueStart: Int

        var text: String { String(decoding: value, as: UTF8.self) }
        /// The members of a comma-separated list, in lower case.
        var members: [String] {
            text.lowercased().split(separator: ",").map { member in
                String(member.drop { $0 == " " || $0 == "\t" }.reversed().drop { $0 == " " || $0 == "\t" }.reversed())
            }
        }
        /// A number of digits and nothing else.
        var number: UInt64? { value.allSatisfy { (0x30...0x39).contains($0) } ? UInt64(text) : nil }
    }

    /// Fields that concern one connection only (RFC 9110 §7.6.1, and the fields of proxies, §11.7).
    static let hopByHop: Set<String> = [
        "connection", "http2-settings", "keep-alive", "proxy-authenticate", "proxy-authentication-info",
        "proxy-authorization",
        "proxy-connection", "te", "trailer", "transfer-encoding", "upgrade",
    ]
}

/// Rules for every accepted request head, checked again from its bytes.
struct HeadOracle {
    private let head: RequestHead
    private let raw: [UInt8]
    private var fields: [Oracle.Field] = []

    static func check(_ head: RequestHead, _ raw: [UInt8]) throws(Violation) {
        var start = 0
        // RFC 9112 §2.2: empty lines before the request line.
        while raw.count > start + 1, raw[start] == 13, raw[start + 1] == 10 { start += 2 }
        guard let (lines, end) = Oracle.section(raw[start...]), let first = lines.first else {
            throw Violation(description: "no empty line ends the head")
        }
        try require(end == raw.count && start <= 4, "the head does not end at its first empty line")
        var oracle = HeadOracle(head: head, raw: raw)
        try oracle.checkRequestLine(first)
        try oracle.checkLines(lines.dropFirst())
        try oracle.checkHost()
        try oracle.checkFraming()
        try oracle.checkConnection()
    }

    private init(head: RequestHead, raw: [UInt8]) {
        self.head = head
        self.raw = raw
    }

    private func text(_ range: ByteRange) throws(Violation) -> ArraySlice<UInt8> {
        try require(range.start <= range.end && range.end <= raw.count, "\(range) is not within \(raw.count) bytes")
        return raw[range.bounds]
    }

    /// RFC 9112 §3.
    private func checkRequestLine(_ line: ArraySlice<UInt8>) throws(Violation) {
        let parts = line.split(separator: 32, omittingEmptySubsequences: false)
        try require(parts.count == 3, "a request line of \(parts.count) parts")
        try require(Oracle.isToken(parts[0]) && parts[0].count <= 64, "the method is no token")
        try require(try text(head.methodRange) == parts[0], "the method is elsewhere")
        try require(try text(head.target.range) == parts[1], "the target is elsewhere")
        try require(parts[1].allSatisfy { $0 > 32 && $0 < 127 && $0 != UInt8(ascii: "#") }, "a sign in the target")
        let version = String(decoding: parts[2], as: UTF8.self)
        try require(version == (head.version == .http10 ? "HTTP/1.0" : version), "\(version) is taken for 1.0")
        try require(version.hasPrefix("HTTP/1.") && parts[2].count == 8, "the version \(version)")
        try require((head.method == .connect) == (head.target.form == .authority), "authority-form is for CONNECT")
        if head.target.form == .asterisk { try require(head.method == .options, "* is for OPTIONS") }
    }

    private mutating func checkLines(_ lines: ArraySlice<ArraySlice<UInt8>>) throws(Violation) {
        try require(lines.count == head.fields.count, "\(lines.count) lines make \(head.fields.count) fields")
        for (line, taken) in zip(lines, head.fields) {
            guard let field = Oracle.field(line) else { throw Violation(description: "a line is no field") }
            try require(
                taken.name == ByteRange(start: line.startIndex, end: field.nameEnd)
                    && taken.value == ByteRange(start: field.valueStart, end: field.valueStart + field.value.count),
                "\(field.name) is elsewhere")
            try require(line.allSatisfy { $0 != 13 && $0 != 10 && $0 != 0 }, "\(field.name) holds a line end")
            fields.append(field)
        }
    }

    /// RFC 9112 §3.2.
    private func checkHost() throws(Violation) {
        let hosts = fields.filter { $0.name == "host" }
        try require(hosts.count <= 1, "two hosts")
        try require(hosts.count == 1 || head.version == .http10, "no host")
        guard let host = hosts.first else { return }
        try require(try text(head.host ?? .empty) == host.value[...], "the host is elsewhere")
        let signs = host.value.allSatisfy { byte in
            Oracle.isTokenByte(byte) || [UInt8(ascii: ":"), UInt8(ascii: "["), UInt8(ascii: "]")].contains(byte)
        }
        try require(signs && !host.value.isEmpty, "the host \(host.text)")
    }

    /// RFC 9112 §6: one length or chunks, and nothing that another could read otherwise.
    private func checkFraming() throws(Violation) {
        let lengths = fields.filter { $0.name == "content-length" }
        let codings = fields.filter { $0.name == "transfer-encoding" }
        try require(lengths.count + codings.count <= 1, "two lengths")
        switch head.body {
        case .none:
            try require(lengths.isEmpty && codings.isEmpty, "a length is passed over")
        case .length(let length):
            try require(lengths.first?.number == length && length <= UInt64(Int64.max), "another length: \(length)")
        case .chunked:
            try require(codings.first?.text.lowercased() == "chunked", "chunks that nobody speaks of")
            try require(head.version == .http11, "chunks in HTTP/1.0")
        }
    }

    /// RFC 9110 §7.6.1.
    private func checkConnection() throws(Violation) {
        let options = fields.filter { $0.name == "connection" }.flatMap(\.members)
        for (field, line) in zip(fields, head.fields) {
            let ends = Oracle.hopByHop.contains(field.name) || options.contains(field.name)
            try require(ends == line.isHopByHop, "\(field.name) \(ends ? "goes on" : "is kept")")
        }
        if options.contains("close") { try require(!head.keepsAlive, "close is passed over") }
        if head.version == .http10, !options.contains("keep-alive") {
            try require(!head.keepsAlive, "HTTP/1.0 is kept open unasked")
        }
        let expectations = fields.filter { $0.name == "expect" }
        let isKnown = expectations.count == 1 && expectations[0].text.lowercased() == "100-continue"
        try require(
            head.expectation == (expectations.isEmpty ? .none : isKnown ? .continueFirst : .unknown),
            "another expectation")
    }
}
