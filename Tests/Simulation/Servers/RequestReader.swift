// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// A strict reader of the requests that the proxy sends upstream. It shares no code with the program.
struct RequestReader {
    /// The news of a connection for a server.
    enum Event {
        /// A head whose body waits for 100 (RFC 9110 §10.1.1).
        case head(ServerRequest)
        /// A head with a part of its body.
        case beginning(ServerRequest)
        /// A whole request.
        case request(ServerRequest)
    }

    /// A rule of HTTP that the proxy breaks.
    struct Fault: Error, CustomStringConvertible {
        let description: String
    }

    private enum Body: Equatable { case none, length(Int), chunked }

    private let authority: String
    /// True if a part of a body is reported.
    private let tellsBeginnings: Bool
    private var bytes: [UInt8] = []
    private var current: (request: ServerRequest, body: Body)?
    private var isHeadTold = false
    /// True if the present request is answered, and the rest of its body goes unread.
    private var isSkipping = false

    init(authority: String, tellsBeginnings: Bool) {
        self.authority = authority
        self.tellsBeginnings = tellsBeginnings
    }

    /// True if no byte of a request is there.
    var isAtRest: Bool { current == nil && bytes.isEmpty }

    mutating func append(_ more: [UInt8]) { bytes += more }

    /// Leaves the rest of the present request unread.
    mutating func skipRest() { isSkipping = true }

    /// The request whose body goes unread, and the part of it that has come.
    var skipped: (request: ServerRequest, part: [UInt8])? {
        guard isSkipping, let (request, body) = current else { return nil }
        switch body {
        case .none: return (request, [])
        case .length(let count): return (request, Array(bytes.prefix(count)))
        case .chunked: return (request, (try? chunks())?.body ?? [])
        }
    }

    /// Returns the available event, or `nil`.
    mutating func next(sentAt step: Int) throws -> Event? {
        if current == nil {
            guard let head = takeHead() else { return nil }
            current = try parse(head)
            isHeadTold = false
        }
        guard let (current, body) = current else { return nil }
        var request = current
        request.sentAt = step
        let isNew = !isHeadTold
        isHeadTold = true
        if isNew, body != .none, request.expectsContinue {
            request.isIncomplete = true
            return .head(request)
        }
        guard try takeBody(body, into: &request) else {
            guard isNew, tellsBeginnings else { return nil }
            request.isIncomplete = true
            return .beginning(request)
        }
        self.current = nil
        guard isSkipping else { return .request(request) }
        isSkipping = false
        return try next(sentAt: step)
    }

    /// Takes a body if all of it is there.
    private mutating func takeBody(_ body: Body, into request: inout ServerRequest) throws -> Bool {
        switch body {
        case .none: return true
        case .length(let count):
            guard bytes.count >= count else { return false }
            request.body = Array(bytes.prefix(count))
            bytes.removeFirst(count)
            return true
        case .chunked:
            let (chunks, end) = try chunks()
            guard let end else { return false }
            request.body = chunks
            return try takeTrailers(from: end, &request)
        }
    }

    private mutating func takeHead() -> [String]? {
        guard let end = Self.find([13, 10, 13, 10], in: bytes, from: 0) else { return nil }
        let text = String(decoding: bytes[..<end], as: UTF8.self)
        bytes.removeFirst(end + 4)
        return text.split(separator: "\r\n", omittingEmptySubsequences: false).map(String.init)
    }

    private func parse(
        _ lines: [String]
    ) throws -> (request: ServerRequest, body: Body) {
        let parts = lines[0].split(separator: " ", omittingEmptySubsequences: false).map(String.init)
        guard parts.count == 3, parts[2] == "HTTP/1.1", parts[1].hasPrefix("/"), !parts[0].isEmpty else {
            throw Fault(description: "the request line \(lines[0])")
        }
        var request = ServerRequest(method: parts[0], target: parts[1])
        for line in lines.dropFirst() {
            guard let colon = line.firstIndex(of: ":") else { throw Fault(description: "the line \(line)") }
            let name = String(line[..<colon])
            let value = String(line[line.index(after: colon)...].drop { $0 == " " })
            guard !name.isEmpty, name.allSatisfy({ $0.isASCII && ($0.isLetter || $0.isNumber || "-_.".contains($0)) })
            else { throw Fault(description: "the field name \(name)") }
            request.fields.append((name, value))
        }
        try check(request)
        return (request, try Self.framing(of: request))
    }

    private static func framing(of request: ServerRequest) throws -> Body {
        let lengths = request.fields.filter { $0.name.lowercased() == "content-length" }
        let codings = request.fields.filter { $0.name.lowercased() == "transfer-encoding" }
        guard lengths.count + codings.count <= 1 else {
            throw Fault(description: "more than one framing (RFC 9112 §6.1)")
        }
        if let coding = codings.first {
            guard coding.value == "chunked" else { throw Fault(description: "the coding \(coding.value)") }
            return .chunked
        }
        guard let length = lengths.first else { return .none }
        guard let count = Int(length.value) else { throw Fault(description: "the length \(length.value)") }
        return count > 0 ? .length(count) : .none
    }

    /// Checks the rules of forwarding that any server relies on (RFC 9110 §7.6).
    private func check(_ request: ServerRequest) throws {
        func all(_ name: String) -> [String] {
            request.fields.filter { $0.name.lowercased() == name }.map(\.value)
        }
        guard all("host") == [authority] else { throw Fault(description: "Host is \(all("host"))") }
        guard all("via").count >= 1 else { throw Fault(description: "no Via (RFC 9110 §7.6.3)") }
        guard all("cookie").count <= 1 else { throw Fault(description: "several Cookie lines (RFC 6265 §5.4)") }
        guard all("authorization").count <= 1 else { throw Fault(description: "several Authorization lines") }
        for field in request.fields {
            let name = field.name.lowercased()
            if ["content_length", "transfer_encoding", "x-hop", "keep-alive", "proxy-connection", "te"]
                .contains(name)
            {
                throw Fault(description: "\(field.name) is not forwarded")
            }
        }
        if ["TRACE", "TRACK", "CONNECT", "DEBUG"].contains(request.method.uppercased()) {
            throw Fault(description: "the method \(request.method)")
        }
    }

    /// Returns the data of the chunks (RFC 9112 §7.1) that are there, and the place after the last one if that is among them.
    private func chunks() throws -> (body: [UInt8], end: Int?) {
        var place = 0
        var body: [UInt8] = []
        while true {
            guard let end = Self.find([13, 10], in: bytes, from: place) else { return (body, nil) }
            guard let size = Int(String(decoding: bytes[place..<end], as: UTF8.self), radix: 16) else {
                throw Fault(description: "a chunk's size")
            }
            place = end + 2
            if size == 0 { return (body, place) }
            guard bytes.count >= place + size + 2 else { return (body, nil) }
            body += bytes[place..<place + size]
            guard bytes[place + size] == 13, bytes[place + size + 1] == 10 else {
                throw Fault(description: "the end of a chunk")
            }
            place += size + 2
        }
    }

    /// Takes the trailer section at `place`, with all before it, if all of it is there.
    private mutating func takeTrailers(from start: Int, _ request: inout ServerRequest) throws -> Bool {
        var place = start
        request.trailers = []
        while true {
            guard let end = Self.find([13, 10], in: bytes, from: place) else { return false }
            defer { place = end + 2 }
            if end == place { break }
            let line = String(decoding: bytes[place..<end], as: UTF8.self)
            let parts = line.split(separator: ":", maxSplits: 1).map(String.init)
            guard !Self.isForbiddenInTrailers(parts[0]) else {
                throw Fault(description: "\(parts[0]) is no trailer (RFC 9110 §6.5.1)")
            }
            request.trailers.append((parts[0], parts.count > 1 ? parts[1] : ""))
        }
        bytes.removeFirst(place)
        return true
    }

    /// Returns true for a field that frames, routes or authenticates, in the spelling of a CGI program too, and for one
    /// that concerns the caller's connection only.
    private static func isForbiddenInTrailers(_ name: String) -> Bool {
        ["authorization", "content-length", "cookie", "host", "te", "transfer-encoding", "x-hop"].contains(
            name.lowercased().replacing("_", with: "-"))
    }

    private static func find(_ pattern: [UInt8], in bytes: [UInt8], from start: Int) -> Int? {
        guard bytes.count >= start + pattern.count else { return nil }
        var index = start
        while index + pattern.count <= bytes.count {
            if bytes[index] == pattern[0], bytes[index..<index + pattern.count].elementsEqual(pattern) { return index }
            index += 1
        }
        return nil
    }
}
