// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// Reads requests off a connection, strictly after RFC 9112: an ambiguous message is not a request.
struct RequestReader {
    private let connection: Connection
    private let idle: Duration
    private var buffer: [UInt8] = []
    private var position = 0
    /// Faults that did not keep the request from being read.
    private(set) var remarks: [String] = []

    init(_ connection: Connection, idle: Duration) {
        self.connection = connection
        self.idle = idle
    }

    /// True if a request has begun and is not complete.
    private(set) var isInside = false

    /// Returns the next request and whether the connection may stay open after it; `nil` at the peer's orderly end.
    mutating func next() throws(Connection.End) -> (request: FakeRequest, staysOpen: Bool)? {
        buffer.removeFirst(position)
        position = 0
        remarks = []
        while buffer.isEmpty {
            let bytes = try connection.receive(within: idle)
            guard !bytes.isEmpty else { return nil }
            buffer = bytes
        }
        isInside = true
        var (request, isHTTP11) = try head(try line())
        request.fields = try fields()
        check(request, isHTTP11: isHTTP11)
        request.body = try body(of: request)
        let beyond = buffer.count - position + connection.waitingBytes
        if beyond > 0 { remarks.append("\(beyond) bytes beyond the request before it was answered") }
        isInside = false
        let options = (request.field("Connection") ?? "").lowercased()
        return (request, isHTTP11 && !options.contains("close"))
    }

    private func head(_ line: [UInt8]) throws(Connection.End) -> (FakeRequest, isHTTP11: Bool) {
        let parts = line.split(separator: 0x20, omittingEmptySubsequences: false)
        guard parts.count == 3, isToken(parts[0]), !parts[1].isEmpty,
            parts[1].allSatisfy({ (0x21..<0x7f).contains($0) })
        else { throw .wrong("the request line is malformed") }
        let version = String(decoding: parts[2], as: UTF8.self)
        guard version == "HTTP/1.1" || version == "HTTP/1.0" else { throw .wrong("the version is unknown") }
        let target = String(decoding: parts[1], as: UTF8.self)
        guard target.hasPrefix("/") || target == "*" else { throw .wrong("the target is not in origin form") }
        guard !target.contains("#") else { throw .wrong("the target holds a fragment") }
        return (FakeRequest(String(decoding: parts[0], as: UTF8.self), target), version == "HTTP/1.1")
    }

    private mutating func fields() throws(Connection.End) -> [(name: String, value: String)] {
        var fields: [(name: String, value: String)] = []
        while true {
            let line = try line()
            guard !line.isEmpty else { return fields }
            guard fields.count < 256 else { throw .wrong("there are more than 256 fields") }
            guard let colon = line.firstIndex(of: UInt8(ascii: ":")), isToken(line[..<colon]) else {
                throw .wrong("a field line is malformed")
            }
            let isSpace: (UInt8) -> Bool = { $0 == 0x20 || $0 == 0x09 }
            var value = line[line.index(after: colon)...].drop(while: isSpace)
            while let last = value.last, isSpace(last) { value.removeLast() }
            guard value.allSatisfy({ $0 >= 0x20 && $0 != 0x7f || $0 == 0x09 }) else {
                throw .wrong("a field value holds a control sign")
            }
            fields.append((String(decoding: line[..<colon], as: UTF8.self), String(decoding: value, as: UTF8.self)))
        }
    }

    /// Checks the fields that a gateway must send, or must not pass on (RFC 9110 §7.2, §7.6.1).
    private mutating func check(_ request: FakeRequest, isHTTP11: Bool) {
        let hosts = request.fields.count { $0.name.lowercased() == "host" }
        if hosts != 1, isHTTP11 || hosts > 1 { remarks.append("\(hosts) Host fields") }
        let cookies = request.fields.count { $0.name.lowercased() == "cookie" }
        // RFC 6265 §5.4. Servers join them by commas, as other fields, and find no session.
        if cookies > 1 { remarks.append("\(cookies) Cookie fields") }
        for name in ["keep-alive", "proxy-connection", "proxy-authorization"] where request.field(name) != nil {
            remarks.append("the field \(name), which is meant for one hop only")
        }
    }

    private mutating func body(of request: FakeRequest) throws(Connection.End) -> [UInt8] {
        let lengths = Set(request.fields.filter { $0.name.lowercased() == "content-length" }.map(\.value))
        let coding = request.field("Transfer-Encoding")
        // RFC 9112 §6.1: both together is how requests are smuggled.
        guard coding == nil || lengths.isEmpty else { throw .wrong("both Content-Length and Transfer-Encoding") }
        if let coding {
            guard coding.lowercased() == "chunked" else { throw .wrong("a transfer coding other than chunked") }
            try expectation(request)
            return try chunks()
        }
        guard let text = lengths.first else { return [] }
        guard lengths.count == 1, text.utf8.allSatisfy({ (0x30...0x39).contains($0) }), let length = Int(text) else {
            throw .wrong("Content-Length is malformed, or there are several")
        }
        guard length <= bodyLimit else { throw .wrong("the body is longer than \(bodyLimit) bytes") }
        if length > 0 { try expectation(request) }
        return try take(length)
    }

    private func expectation(_ request: FakeRequest) throws(Connection.End) {
        guard request.field("Expect")?.lowercased() == "100-continue" else { return }
        try connection.send(Array("HTTP/1.1 100 Continue\r\n\r\n".utf8))
    }

    private mutating func chunks() throws(Connection.End) -> [UInt8] {
        var body: [UInt8] = []
        while true {
            let line = try line()
            let digits = line.prefix { $0 != UInt8(ascii: ";") }
            guard let size = Int(String(decoding: digits, as: UTF8.self), radix: 16), size >= 0,
                digits.first != UInt8(ascii: "+")
            else { throw .wrong("a chunk size is malformed") }
            guard size <= bodyLimit - body.count else { throw .wrong("the body is longer than \(bodyLimit) bytes") }
            if size == 0 {
                _ = try fields()
                return body
            }
            body += try take(size)
            guard try self.line().isEmpty else { throw .wrong("a chunk is longer than its size") }
        }
    }

    /// Returns a line without its CRLF; a lone LF or CR does not end a line (RFC 9112 §2.2).
    private mutating func line() throws(Connection.End) -> [UInt8] {
        var searched = position
        while true {
            if let end = buffer[searched...].firstIndex(of: 0x0a) {
                guard end > position, buffer[end - 1] == 0x0d else { throw .wrong("a line ends in a lone LF") }
                let line = buffer[position..<end - 1]
                guard !line.contains(0x0d) else { throw .wrong("a lone CR in a line") }
                position = end + 1
                return Array(line)
            }
            guard buffer.count - position <= 65_536 else { throw .wrong("a line is longer than 64 KiB") }
            searched = buffer.count
            try fill()
        }
    }

    private mutating func take(_ count: Int) throws(Connection.End) -> [UInt8] {
        var result = Array(buffer[position...].prefix(count))
        position += result.count
        while result.count < count {
            // The rest goes past the buffer, so that a long body is not moved about in it.
            buffer = try connection.receive(within: .seconds(60))
            position = 0
            guard !buffer.isEmpty else { throw .gone }
            let part = buffer.prefix(count - result.count)
            result += part
            position = part.count
        }
        return result
    }

    private mutating func fill() throws(Connection.End) {
        let bytes = try connection.receive(within: .seconds(60))
        guard !bytes.isEmpty else { throw .gone }
        buffer += bytes
    }
}

/// 64 MiB.
private let bodyLimit = 1 << 26

/// Returns true if the bytes are a token (RFC 9110 §5.6.2).
private func isToken(_ bytes: some Collection<UInt8>) -> Bool {
    !bytes.isEmpty
        && bytes.allSatisfy { byte in
            switch byte {
            case UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "a")...UInt8(ascii: "z"),
                UInt8(ascii: "0")...UInt8(ascii: "9"):
                true
            default: Array("!#$%&'*+-.^_`|~".utf8).contains(byte)
            }
        }
}
