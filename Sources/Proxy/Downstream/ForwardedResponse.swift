// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import ChallengeClient
internal import HTTPWire

/// The response of one exchange on its way to the caller: the upstream's fields, and the framing (RFC 9112 §6).
struct ForwardedResponse {
    /// Framing that shows the caller where the body ends (RFC 9112 §6).
    enum Framing {
        /// No body, or no head yet.
        case none
        /// By `Content-Length`, which libcurl checks.
        case length
        case chunked
        /// End of the connection, for callers with HTTP/1.0, which has no chunks.
        case untilClose

        /// True if pieces of the body are sent with nothing between them.
        var passesBodyAsItIs: Bool { self == .length || self == .untilClose }

        /// Writes a piece of the body.
        func write(_ bytes: Span<UInt8>, to output: inout ByteQueue) {
            switch self {
            case .none:
                break
            case .length, .untilClose:
                output.append(bytes)
            case .chunked:
                guard !bytes.isEmpty else { return }
                ResponseWriter.chunkHead(bytes.count, to: &output)
                output.append(bytes)
                ResponseWriter.chunkTail(to: &output)
            }
        }
    }

    private(set) var framing = Framing.none
    private var isHead = false
    private(set) var version = HTTPVersion.http11
    private var acceptsTrailers = false
    /// True if a part of the upstream's response is in the output.
    private(set) var hasBegun = false
    /// True if all of the response is in the output.
    private(set) var isWhole = false

    /// True if authentication fields of the response belong to a session of the proxy, not to the caller.
    var hidesAuthentication = false

    /// The cookies that are not passed on, because they belong to a session (CONTRIBUTING, rule 9).
    var held = HeldCookies()

    /// True if the body ends with the connection.
    var endsWithConnection: Bool { framing == .untilClose }

    /// True if fields may follow the body: the caller accepts them (RFC 9110 §6.5.1) and gets chunks.
    var takesTrailers: Bool { acceptsTrailers && framing == .chunked && !isWhole }

    /// Resets the value for the next request of the caller.
    mutating func reset(isHead: Bool, version: HTTPVersion, acceptsTrailers: Bool = false) {
        self.isHead = isHead
        self.acceptsTrailers = acceptsTrailers
        self.version = version
        framing = .none
        hasBegun = false
        isWhole = false
        hidesAuthentication = false
        held = HeldCookies()
    }

    /// Writes the head for the caller from that of the upstream, whose ranges refer to `bytes`. Returns true if the connection
    /// can be kept afterwards. `addresses` is called if a field may name the upstream, and `date` if the upstream sends no date.
    mutating func writeHead(
        _ head: ResponseHead, in bytes: Span<UInt8>, keepsAlive: Bool, to output: inout ByteQueue,
        date: () -> String, addresses: () -> ReverseMapping?
    ) -> Bool {
        hasBegun = true
        let isBodyless = isHead || head.status == 204 || head.status == 304
        var keepsAlive = keepsAlive
        if isBodyless {
            framing = .none
        } else if head.contentLength != nil {
            framing = .length
        } else if version == .http11 {
            framing = .chunked
        } else {
            framing = .untilClose
            keepsAlive = false
        }
        // Room for all added fields as well, so that no bytes are moved.
        output.reserve(bytes.count + 256)
        writeStatusAndFields(of: head, in: bytes, to: &output, addresses: addresses)
        // RFC 9110 §8.6: no length in 204; in a response to HEAD and in 304, the length of the omitted body.
        if let length = head.contentLength, head.status != 204 { ResponseWriter.contentLength(length, to: &output) }
        // RFC 9110 §6.6.1: a proxy that forwards a response without a date adds one.
        if !head.fields.contains(where: { $0.kind == .date && !$0.isNominated }) {
            ResponseWriter.field("Date", date().utf8.span, to: &output)
        }
        output.append(Self.via(head))
        // RFC 9110 §15.5.22: a 426 must name the required protocol.
        if head.status == 426 { Self.writeUpgrade(of: head, in: bytes, to: &output) }
        if framing == .chunked { ResponseWriter.transferEncodingChunked(to: &output) }
        ResponseWriter.connection(keepsAlive: keepsAlive, to: version, in: &output)
        ResponseWriter.endOfHead(to: &output)
        return keepsAlive
    }

    /// Writes the status line and the fields that are passed on, except those about framing and connection.
    func writeStatusAndFields(
        of head: ResponseHead, in bytes: Span<UInt8>, to output: inout ByteQueue, addresses: () -> ReverseMapping?
    ) {
        // The unchanged lines that are not written yet.
        var run = FieldRun(statusLineOf: head)
        if run.isEmpty { Self.writeStatusLine(head, in: bytes, to: &output) }
        // A refusal names its challenge (RFC 9110 §15.5.2). Other authentication fields concern the proxy's session.
        let hidesChallenge = hidesAuthentication && head.status != 401 && head.status != 403
        var map: ReverseMapping?
        for index in head.fields.indices {
            let line = head.fields[index]
            if line.isHopByHop {
                // Announces fields after the body, if any may follow (RFC 9110 §6.6.2).
                guard line.kind == .trailer, !line.isNominated, takesTrailers else { continue }
            }
            switch line.kind {
            case .contentLength:
                continue
            case .contentLocation, .location, .refresh, .setCookie:
                if held.contains(line) { continue }
                if map == nil { map = addresses() }
                guard let local = map?.local(line, in: bytes) else { break }
                run.taken().append(of: bytes, to: &output)
                output.append(bytes.extracting(line.name.start..<line.value.start))
                output.append(local)
                output.append("\r\n")
                continue
            case .authenticationInfo:
                // The session is the proxy's, so its fields are not passed on (CONTRIBUTING, rule 9). With `rspauth` of Digest, a
                // caller could guess passwords (RFC 7616 §3.5).
                if hidesAuthentication { continue }
            case .wwwAuthenticate:
                if hidesChallenge { continue }
            default:
                break
            }
            if !run.add(line) { run.taken(by: line).append(of: bytes, to: &output) }
        }
        run.append(of: bytes, to: &output)
    }

    /// Writes the status line, with the upstream's phrase or else the registered one. HTTP/2 has no phrase (RFC 9113
    /// §8.3.2), and some callers do not expect a line without a phrase.
    static func writeStatusLine(_ head: ResponseHead, in bytes: Span<UInt8>, to output: inout ByteQueue) {
        if head.reason.isEmpty {
            ResponseWriter.statusLine(head.status, to: &output)
        } else {
            ResponseWriter.statusLine(head.status, reason: bytes.extracting(head.reason.bounds), to: &output)
        }
    }

    /// Returns the proxy's `Via`, added after the upstream's, with the version of the response (RFC 9110 §7.6.3).
    static func via(_ head: ResponseHead) -> StaticString {
        switch (head.majorVersion, head.minorVersion) {
        case (2, _): "Via: 2 countersign\r\n"
        case (3, _): "Via: 3 countersign\r\n"
        case (_, 0): "Via: 1.0 countersign\r\n"
        default: "Via: 1.1 countersign\r\n"
        }
    }

    /// Writes the end of the body. Fields follow, and then `endTrailers`. Allowed if `takesTrailers`.
    func beginTrailers(to output: inout ByteQueue) { ResponseWriter.lastChunk(to: &output) }

    /// Writes the end of the fields after the body.
    mutating func endTrailers(to output: inout ByteQueue) {
        ResponseWriter.endOfHead(to: &output)
        isWhole = true
    }

    /// Writes the end of the body, once.
    mutating func writeEnd(to output: inout ByteQueue) {
        if framing == .chunked, !isWhole { ResponseWriter.endOfChunks(to: &output) }
        isWhole = true
    }
}

extension ForwardedResponse {
    /// Writes an interim response (RFC 9110 §15.2), whose ranges refer to `bytes`.
    ///
    /// Writes nothing for a caller with HTTP/1.0, which has no interim responses, and nothing after the final response has begun.
    /// An interim response may precede a challenge that is answered here, so fields of sessions and logins are left out.
    func writeInterim(_ head: ResponseHead, in bytes: Span<UInt8>, to output: inout ByteQueue) {
        guard version == .http11, !hasBegun, head.isInterim else { return }
        Self.writeStatusLine(head, in: bytes, to: &output)
        for line in head.fields where !line.isHopByHop {
            switch line.kind {
            case .authenticationInfo, .contentLength, .mfpChallenge, .mfpConflict, .setCookie, .wwwAuthenticate:
                continue
            default:
                output.append(bytes.extracting(line.name.start..<line.value.end))
                output.append("\r\n")
            }
        }
        // Callers expect a 100 without fields.
        if head.status != 100 { output.append(Self.via(head)) }
        ResponseWriter.endOfHead(to: &output)
    }
}

// The end of HTTP on both connections (RFC 9110 §15.2.2).
extension ForwardedResponse {
    /// Writes the head of a 101 for the caller from that of the upstream, whose ranges refer to `bytes`. Throws, and writes
    /// nothing, if the new protocol is not in `offer`, which refers to `request`. `addresses` as in `writeHead`.
    func writeSwitch(
        _ head: ResponseHead, in bytes: Span<UInt8>, to offer: UpgradeOffer, askedBy request: Span<UInt8>,
        to output: inout ByteQueue, addresses: () -> ReverseMapping?
    ) throws(WireError) {
        try offer.check(head, in: bytes, askedBy: request)
        writeStatusAndFields(of: head, in: bytes, to: &output, addresses: addresses)
        output.append(Self.via(head))
        Self.writeUpgrade(of: head, in: bytes, to: &output)
        ResponseWriter.endOfHead(to: &output)
    }

    /// Writes the protocol that the upstream switches to or, with 426, requires. The field is hop-by-hop, hence written
    /// by the proxy.
    static func writeUpgrade(of head: ResponseHead, in bytes: Span<UInt8>, to output: inout ByteQueue) {
        ResponseWriter.field("Connection", "Upgrade", to: &output)
        for line in head.fields where line.kind == .upgrade {
            ResponseWriter.field("Upgrade", bytes.extracting(line.value.bounds), to: &output)
        }
    }
}
