// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import HTTPWire

// The end of HTTP on both connections (RFC 9110 §15.2.2).
extension ForwardedResponse {
    /// Writes the head of a 101 for the caller, from that of the upstream, whose ranges mean `bytes`. Throws, and writes
    /// nothing, where it switches to what `offer` does not hold, which stands in `request`. `addresses` as in `writeHead`.
    func writeSwitch(
        _ head: ResponseHead, in bytes: Span<UInt8>, to offer: UpgradeOffer, askedBy request: Span<UInt8>,
        to output: inout ByteQueue, addresses: () -> AddressMap?
    ) throws(WireError) {
        try offer.check(head, in: bytes, askedBy: request)
        writeStatusAndFields(of: head, in: bytes, to: &output, addresses: addresses)
        output.append(Self.via(head))
        Self.writeUpgrade(of: head, in: bytes, to: &output)
        ResponseWriter.endOfHead(to: &output)
    }

    /// What the upstream switches to, or (with 426) asks for: hop-by-hop, so it is written anew for the hop to the caller.
    static func writeUpgrade(of head: ResponseHead, in bytes: Span<UInt8>, to output: inout ByteQueue) {
        ResponseWriter.field("Connection", "Upgrade", to: &output)
        for line in head.fields where line.kind == .upgrade {
            ResponseWriter.field("Upgrade", bytes.extracting(line.value.bounds), to: &output)
        }
    }
}
