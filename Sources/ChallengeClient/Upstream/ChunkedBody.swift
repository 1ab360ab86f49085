// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Curl
internal import HTTPWire

/// The framing of a request's body that goes in chunks (RFC 9112 §7.1), and the trailer fields that end it.
struct ChunkedBody: ~Copyable {
    private var trailers = ByteQueue()

    /// Forgets the trailer fields of another request.
    mutating func begin() {
        if !trailers.isEmpty { trailers.removeAll(keepingCapacity: 0) }
    }

    /// Adds a trailer field (RFC 9112 §7.1.2). False if the field could be taken for two.
    mutating func append(name: Span<UInt8>, value: Span<UInt8>) -> Bool {
        RequestWriter.field(name, value, to: &trailers)
    }

    /// Appends `piece`, of which `supply` tells, to `output`: as a chunk, or with the last chunk and the trailer fields.
    mutating func frame(_ piece: borrowing ByteQueue, _ supply: BodySupply, to output: inout ByteQueue) {
        piece.withSpan { ResponseWriter.chunk($0, to: &output) }
        guard supply == .end else { return }
        ResponseWriter.lastChunk(to: &output)
        trailers.withSpan { output.append($0) }
        trailers.removeAll(keepingCapacity: 0)
        ResponseWriter.endOfHead(to: &output)
    }
}
