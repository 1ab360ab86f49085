// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Basics

/// Head of a request, as ranges of the parsed bytes.
///
/// The ranges are valid only while the bytes stay where the parser saw them.
public struct RequestHead: Sendable {
    /// Expectation of an `Expect` field (RFC 9110 §10.1.1).
    public enum Expectation: Sendable {
        case none, continueFirst, unknown
    }

    /// Known method, or `other`.
    public internal(set) var method = RequestMethod.other
    /// Method, as it was spelled.
    public internal(set) var methodRange = ByteRange.empty
    /// Request target.
    public internal(set) var target = RequestTarget.none
    /// Version of the request.
    public internal(set) var version = HTTPVersion.http11
    /// Field lines, in order.
    public internal(set) var fields: [FieldLine] = []
    /// Validated value of `Host`; nil only in HTTP/1.0.
    public internal(set) var host: ByteRange?
    /// Host name in `Host`, without a port.
    var hostName: ByteRange?
    /// Length of the body.
    public internal(set) var body = BodyFraming.none
    /// Expectation, regardless of the version.
    public internal(set) var expectation = Expectation.none
    /// True if the caller accepts trailers (`TE: trailers`, RFC 9110 §10.1.4).
    public internal(set) var acceptsTrailers = false

    var connection = ConnectionOptions()
    var hasLength = false
    var hasTransferEncoding = false
    var hasUpgrade = false

    /// Host and port of the request.
    ///
    /// Those of an absolute target override `Host`, which must then be ignored (RFC 9112 §3.2.2).
    public var authority: ByteRange? { target.authority ?? host }

    /// Returns the host of `authority` without a port, an IPv6 address with brackets.
    ///
    /// `bytes` are those of the head.
    public func authorityHost(in bytes: Span<UInt8>) -> ByteRange? {
        guard let authority = target.authority else { return hostName }
        return Authority(bytes, authority)?.host
    }

    /// True if the caller intends to reuse the connection (RFC 9112 §9.3).
    ///
    /// `close` ends it in every version, and HTTP/1.0 must ask for `keep-alive`.
    public var keepsAlive: Bool {
        if connection.close { return false }
        return version == .http11 || connection.keepAlive
    }

    /// True if the caller waits for 100 before sending its body (RFC 9110 §10.1.1).
    ///
    /// Never in HTTP/1.0, where the expectation must be ignored, and never without a body.
    public var expectsContinue: Bool {
        expectation == .continueFirst && version == .http11 && !body.isEmpty
    }

    /// True if the caller may withhold its body until it gets a response, with any expectation.
    public var awaitsAnswer: Bool { expectation != .none && version == .http11 && !body.isEmpty }

    /// True if the caller requests another protocol.
    ///
    /// `Upgrade`, nominated by `Connection`, in HTTP/1.1 (RFC 9110 §7.8).
    public var requestsUpgrade: Bool { hasUpgrade && connection.upgrade && version == .http11 }

    /// Returns true if `Connection` nominates a trailer field, which is then not forwarded.
    ///
    /// RFC 9110 §7.6.1; `bytes` are those of the head.
    public func nominates(trailer name: Span<UInt8>, in bytes: Span<UInt8>) -> Bool {
        connection.names(name, in: bytes)
    }

    /// Returns the first field line of that kind.
    public func first(_ kind: FieldName) -> FieldLine? {
        for index in fields.indices where fields[index].kind == kind { return fields[index] }
        return nil
    }

    /// Empties the head property by property, to retain the memory of its tables.
    @inline(__always)
    mutating func reset() {
        fields.removeAll(keepingCapacity: true)
        connection.removeAll()
        method = .other
        methodRange = .empty
        target = .none
        version = .http11
        (host, hostName) = (nil, nil)
        body = .none
        expectation = .none
        acceptsTrailers = false
        hasLength = false
        hasTransferEncoding = false
        hasUpgrade = false
    }
}

/// Version of an HTTP/1 message; a later minor version counts as 1.1 (RFC 9110 §2.5).
public enum HTTPVersion: UInt8, Sendable {
    case http10, http11
}

extension RequestHead {
    /// Maximum length of a method; longer ones are refused rather than forwarded (RFC 9112 §3).
    private static let methodLimit = 64

    /// Parses `method SP request-target SP HTTP-version`, without CRLF (RFC 9112 §3).
    ///
    /// Exactly one space each.
    @inline(__always)
    mutating func parseRequestLine(_ bytes: Span<UInt8>, from start: Int, to end: Int) throws(WireErrorCode) {
        let index = bytes.endOfToken(from: start, to: end)
        guard index > start, index < end, bytes[index] == .space else { throw .requestLineInvalid }
        guard index - start <= RequestHead.methodLimit else { throw .methodTooLong }
        methodRange = ByteRange(start: start, end: index)
        method = RequestMethod(bytes, methodRange)
        target = try RequestTarget(bytes, from: index + 1, to: end, method: method)
        version = try RequestHead.version(bytes, from: target.range.end + 1, to: end)
    }

    /// Parses `HTTP/`, in capitals, a digit, a dot and a digit (RFC 9112 §2.3).
    @inline(__always)
    private static func version(
        _ bytes: Span<UInt8>, from start: Int, to end: Int
    ) throws(WireErrorCode) -> HTTPVersion {
        guard start < end, bytes[start] != .space else { throw .requestLineInvalid }
        guard end - start == 8, bytes.matches(ByteRange(start: start, end: start + 5), exactly: "HTTP/"),
            bytes[start + 5].isDigit, bytes[start + 6] == UInt8(ascii: "."), bytes[start + 7].isDigit
        else { throw .versionInvalid }
        guard bytes[start + 5] == UInt8(ascii: "1") else { throw .versionUnsupported }
        // RFC 9110 §2.5: a later minor version is read as the highest known.
        return bytes[start + 7] == UInt8(ascii: "0") ? .http10 : .http11
    }
}

extension RequestHead {
    /// Adds one field line and applies its framing rules.
    mutating func add(_ line: FieldLine, in bytes: Span<UInt8>) throws(WireErrorCode) {
        fields.append(line)
        switch line.kind {
        case .host:
            // RFC 9112 §3.2: a repeated or invalid Host is 400. Applied to every version: no honest client sends two.
            guard host == nil else { throw .hostRepeated }
            guard let authority = Authority(bytes, line.value) else { throw .hostInvalid }
            (host, hostName) = (line.value, authority.host)
        case .contentLength:
            // RFC 9112 §6.3 permits treating identical repeats as one; strict framing has no use for them.
            guard !hasLength else { throw .contentLengthRepeated }
            hasLength = true
            body = .length(try BodyFraming.length(bytes, line.value))
        case .transferEncoding:
            guard !hasTransferEncoding else { throw .transferEncodingInvalid }
            hasTransferEncoding = true
            try BodyFraming.checkTransferEncoding(bytes, line.value)
        case .connection:
            try connection.add(bytes, line.value)
        case .expect:
            let known = expectation == .none && bytes.matches(line.value, ignoringCase: "100-continue")
            expectation = known ? .continueFirst : .unknown
        case .te:
            addTE(bytes, line.value)
        case .upgrade:
            hasUpgrade = true
        default:
            break
        }
    }

    /// Checks the rules that need the complete head.
    @inline(__always)
    mutating func finish(in bytes: Span<UInt8>) throws(WireErrorCode) {
        if hasTransferEncoding {
            // RFC 9112 §6.1: HTTP/1.0 has no transfer codings, so an intermediary has misread the message.
            guard version == .http11 else { throw .transferEncodingOldVersion }
            // RFC 9112 §6.3: ought to be handled as an error, since it is how requests are smuggled.
            guard !hasLength else { throw .lengthAndEncoding }
            body = .chunked
        }
        guard host != nil || version == .http10 else { throw .hostMissing }
        connection.mark(&fields, in: bytes)
    }

    /// Looks for the member `trailers` in `TE`.
    ///
    /// `TE` may hold weights and unknown codings (RFC 9110 §10.1.4), which are ignored. A malformed list accepts
    /// nothing.
    private mutating func addTE(_ bytes: Span<UInt8>, _ value: ByteRange) {
        var start = value.start
        while start < value.end {
            var end = start
            while end < value.end, bytes[end] != UInt8(ascii: ",") { end += 1 }
            var first = start
            var last = end
            while first < last, bytes[first].isBlank { first += 1 }
            while last > first, bytes[last - 1].isBlank { last -= 1 }
            if bytes.matches(ByteRange(start: first, end: last), ignoringCase: "trailers") { acceptsTrailers = true }
            start = end + 1
        }
    }
}
