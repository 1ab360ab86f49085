// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

extension RequestHead {
    /// Takes in one more field line, and what it says about framing.
    mutating func add(_ line: FieldLine, in bytes: Span<UInt8>) throws(WireErrorCode) {
        fields.append(line)
        switch line.kind {
        case .host:
            // RFC 9112 section 3.2: more than one, or an invalid one, is 400. In every version: nobody sends two in earnest.
            guard host == nil else { throw .hostRepeated }
            guard let authority = Authority(bytes, line.value) else { throw .hostInvalid }
            (host, hostName) = (line.value, authority.host)
        case .contentLength:
            // RFC 9112 section 6.3 allows to take identical repeats for one; strict framing has no use for them.
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

    /// Decides what only the whole head tells.
    @inline(__always)
    mutating func finish(in bytes: Span<UInt8>) throws(WireErrorCode) {
        if hasTransferEncoding {
            // RFC 9112 section 6.1: HTTP/1.0 knows no transfer codings, so somebody on the way took the message wrongly.
            guard version == .http11 else { throw .transferEncodingOldVersion }
            // RFC 9112 section 6.3: ought to be handled as an error; it is how requests are smuggled.
            guard !hasLength else { throw .lengthAndEncoding }
            body = .chunked
        }
        guard host != nil || version == .http10 else { throw .hostMissing }
        connection.mark(&fields, in: bytes)
    }

    /// `TE` may hold weights and unknown codings (RFC 9110 section 10.1.4); only the member `trailers` matters, and a
    /// list that cannot be read accepts nothing.
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
