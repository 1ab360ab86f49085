// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import HTTPWire

/// The 101 of an upstream on its way to the caller: the end of HTTP on both connections (RFC 9110 section 15.2.2).
enum SwitchedResponse {
    /// Writes the head for the caller, from that of the upstream, whose ranges mean `bytes`. Throws, and writes nothing, where
    /// it switches to what `offer` does not hold, which stands in `request`.
    static func write(
        _ head: ResponseHead, in bytes: Span<UInt8>, to offer: UpgradeOffer, askedBy request: Span<UInt8>,
        to output: inout ByteQueue
    ) throws(WireError) {
        try offer.check(head, in: bytes, askedBy: request)
        ResponseWriter.statusLine(101, reason: bytes.extracting(head.reason.bounds), to: &output)
        for line in head.fields where !line.isHopByHop {
            switch line.kind {
            case .contentLength, .authenticationInfo, .wwwAuthenticate:
                // A 101 has no body, whatever it says of one (RFC 9112 section 6.3); the session is the proxy's
                // (CONTRIBUTING, rule 9).
                continue
            default:
                output.append(bytes.extracting(line.name.start..<line.value.end))
                output.append("\r\n")
            }
        }
        output.append("Via: 1.1 countersign\r\n")
        writeUpgrade(head, in: bytes, to: &output)
        ResponseWriter.endOfHead(to: &output)
    }

    /// What the upstream switches to, or (with 426) asks for: hop-by-hop, so it is written anew for the hop to the caller.
    static func writeUpgrade(_ head: ResponseHead, in bytes: Span<UInt8>, to output: inout ByteQueue) {
        ResponseWriter.field("Connection", "Upgrade", to: &output)
        for line in head.fields where line.kind == .upgrade {
            ResponseWriter.field("Upgrade", bytes.extracting(line.value.bounds), to: &output)
        }
    }
}
