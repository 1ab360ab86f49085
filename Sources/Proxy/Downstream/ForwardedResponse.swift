// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import ChallengeClient
internal import HTTPWire

/// The response of one exchange on its way to the caller: which of the upstream's fields pass, and how the body is
/// framed for this caller (RFC 9112 §6).
struct ForwardedResponse {
    /// The end of the body as the caller is told it (RFC 9112 §6).
    enum Framing {
        /// No body, or none yet.
        case none
        /// As long as `Content-Length` says; libcurl sees to it that it is.
        case length
        case chunked
        /// Until the connection ends: for callers of HTTP/1.0, who know no chunks.
        case untilClose

        /// True if pieces of the body go to the caller without anything between them.
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
    /// True if something of the upstream's response is in the output.
    private(set) var hasBegun = false
    /// True if all of it is.
    private(set) var isWhole = false

    /// True if what the response says about authentication concerns a session of ours, and not the caller.
    var hidesAuthentication = false

    /// The cookies that stay here, as they are a session's (CONTRIBUTING, rule 9).
    var held = HeldCookies()

    /// True if the end of the connection is what ends the body.
    var endsWithConnection: Bool { framing == .untilClose }

    /// True if fields may follow the body: the caller said that it takes them (RFC 9110 §6.5.1), and it gets chunks.
    var takesTrailers: Bool { acceptsTrailers && framing == .chunked && !isWhole }

    /// For the next request: whether it was HEAD, which version the caller speaks, and whether it takes trailers.
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

    /// Writes the head for the caller, from that of the upstream, whose ranges mean `bytes`; `addresses` is asked for what
    /// names the upstream, if something does, and `date` for the time, if the upstream tells none. Returns whether the
    /// connection can be kept after this response.
    mutating func writeHead(
        _ head: ResponseHead, in bytes: Span<UInt8>, keepsAlive: Bool, to output: inout ByteQueue,
        date: () -> String, addresses: () -> AddressMap?
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
        // Room for all that is added, too: nothing is moved then.
        output.reserve(bytes.count + 256)
        writeStatusAndFields(of: head, in: bytes, to: &output, addresses: addresses)
        // RFC 9110 §8.6: none in 204; in an answer to HEAD and in 304 it is that of the body left out.
        if let length = head.contentLength, head.status != 204 { ResponseWriter.contentLength(length, to: &output) }
        // RFC 9110 §6.6.1: whoever forwards a response without one adds the time at which it came.
        if !head.fields.contains(where: { $0.kind == .date && !$0.isNominated }) {
            ResponseWriter.field("Date", date().utf8.span, to: &output)
        }
        output.append(Self.via(head))
        // RFC 9110 §15.5.22: it must say what is required.
        if head.status == 426 { Self.writeUpgrade(of: head, in: bytes, to: &output) }
        if framing == .chunked { ResponseWriter.transferEncodingChunked(to: &output) }
        ResponseWriter.connection(keepsAlive: keepsAlive, to: version, in: &output)
        ResponseWriter.endOfHead(to: &output)
        return keepsAlive
    }

    /// Writes the status line and the fields that pass, all but those that tell how the message is framed and what becomes of the
    /// connection.
    func writeStatusAndFields(
        of head: ResponseHead, in bytes: Span<UInt8>, to output: inout ByteQueue, addresses: () -> AddressMap?
    ) {
        // What goes as it came, and is not written yet.
        var run = FieldRun(statusLineOf: head)
        if run.isEmpty { Self.writeStatusLine(head, in: bytes, to: &output) }
        // A refusal says what it wants (RFC 9110 §15.5.2); anything else that speaks of authentication is about our session.
        let hidesChallenge = hidesAuthentication && head.status != 401 && head.status != 403
        var map: AddressMap?
        for index in head.fields.indices {
            let line = head.fields[index]
            if line.isHopByHop {
                // Which fields may follow the body, where any may (RFC 9110 §6.6.2).
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
                // The session is the proxy's; what concerns it stays here (CONTRIBUTING, rule 9). By `rspauth` of Digest a caller
                // could try passwords (RFC 7616 §3.5).
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

    /// With the upstream's phrase, or the registered one where it has none, as in HTTP/2 (RFC 9113 §8.3.2): some callers do not
    /// expect a line without one.
    static func writeStatusLine(_ head: ResponseHead, in bytes: Span<UInt8>, to output: inout ByteQueue) {
        if head.reason.isEmpty {
            ResponseWriter.statusLine(head.status, to: &output)
        } else {
            ResponseWriter.statusLine(head.status, reason: bytes.extracting(head.reason.bounds), to: &output)
        }
    }

    /// Ours behind those that are there, with the version in which the response came (RFC 9110 §7.6.3).
    static func via(_ head: ResponseHead) -> StaticString {
        switch (head.majorVersion, head.minorVersion) {
        case (2, _): "Via: 2 countersign\r\n"
        case (3, _): "Via: 3 countersign\r\n"
        case (_, 0): "Via: 1.0 countersign\r\n"
        default: "Via: 1.1 countersign\r\n"
        }
    }

    /// Writes the end of the body; fields follow, and then `endTrailers`. Only where it `takesTrailers`.
    func beginTrailers(to output: inout ByteQueue) { ResponseWriter.lastChunk(to: &output) }

    /// Writes the end of the fields behind the body.
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
