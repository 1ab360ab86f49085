// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import ChallengeHandling

// Bodies in `aws-chunked` coding, whose chunks are taken off so that the data can be signed.
extension Exchange {
    /// True if the caller's chunks are taken off, so that the fields about them must not be sent.
    package var decodesChunks: Bool { chunks != nil }
    /// The checksums after the data of an `aws-chunked` body, once it has been received.
    package var chunkChecksums: [(name: [UInt8], value: [UInt8])] {
        chunks?.trailers.filter { AWSChunkFields.isChecksum($0.name) } ?? []
    }

    func receiveChunks(_ data: Span<UInt8>) {
        do throws(AWSChunkDecoder.Fault) {
            try chunks?.decode(data) { body.append($0) }
            bodyCame()
        } catch {
            if !machine.state.hasEnded { abort(ExchangeError(error)) }
        }
    }

    /// Ends the chunks. Returns false if they are not whole, and ends the exchange.
    func finishChunks() -> Bool {
        do throws(AWSChunkDecoder.Fault) {
            try chunks?.finish()
            return true
        } catch {
            if !machine.state.hasEnded { abort(ExchangeError(error)) }
            return false
        }
    }
}
