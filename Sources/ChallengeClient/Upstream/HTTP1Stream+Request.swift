// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Curl
internal import HTTPWire

// The request on its way out.
extension HTTP1Stream {
    /// How much of the request's body is sent at once, in bytes.
    private static let bodyPiece = 64 * 1024
    /// Up to so much memory is kept for the next request.
    private static let keptMemory = 16 * 1024

    /// True if the rest of the request is of no interest to the upstream: it has refused it, or answered in place of the
    /// word that the body waits for, and the connection ends with this answer (RFC 9112 section 9.3).
    var sendsNoMore: Bool { transfer.isHeadComplete && (transfer.answer.status >= 300 || awaitsContinue) }

    /// Sends the head, and the body behind it as far as it is here. Where none of it is here yet, the head waits for it until the
    /// end of this turn of the loop: mostly both have come from the caller at once, and so leave at once.
    func sendHead() {
        beginWaiting()
        fill()
        guard transfer.awaitsBody else { return send() }
        isHeld = true
        driver.hold(self)
    }

    /// The turn ends: a head that waited for the body goes without it.
    func sendHeld() {
        guard isHeld, isRunning else { return }
        send()
        watch()
    }

    /// Sends what the connection takes.
    func send() {
        guard let connection else { return }
        if isHeld {
            isHeld = false
            fill()
        }
        do throws(UpstreamConnection.Broken) {
            while true {
                try connection.send(&output)
                // What was begun over TLS comes again as it was: nothing is added to what is left.
                guard output.isEmpty, isRunning, wantsBody else { break }
                fill()
                if output.isEmpty { break }
            }
        } catch {
            // What it says before it closes still counts: the request may be too much for it.
            output.removeAll()
        }
        if output.isEmpty, !wantsBody { output.wipe(keepingCapacity: Self.keptMemory) }
    }

    /// True if the body is to be asked for.
    var wantsBody: Bool {
        !transfer.upload.isComplete && !transfer.awaitsBody && !awaitsContinue && !sendsNoMore
    }

    private func fill() {
        guard wantsBody else { return }
        switch isChunked ? takeChunk() : takePiece(into: &output) {
        case .bytes, .pause: break
        case .end where isChunked:
            ResponseWriter.lastChunk(to: &output)
            trailers.withSpan { output.append($0) }
            trailers.removeAll(keepingCapacity: 0)
            ResponseWriter.endOfHead(to: &output)
        case .end: break
        case .abort: finish(.abortedByCallback)
        }
    }

    private func takePiece(into queue: inout ByteQueue) -> BodySupply {
        let length = transfer.upload.next(upTo: Self.bodyPiece)
        var supply = BodySupply.pause
        unsafe queue.withUnsafeFreeSpace(minimum: length) { space in
            supply = unsafe transfer.supplyBody(into: UnsafeMutableRawBufferPointer(rebasing: space.prefix(length)))
            if case .bytes(let count) = supply { return count }
            return 0
        }
        return supply
    }

    /// The size of a chunk, which stands before its data, is known when those are there.
    private func takeChunk() -> BodySupply {
        var piece = ByteQueue()
        let supply = takePiece(into: &piece)
        piece.withSpan { ResponseWriter.chunk($0, to: &output) }
        return supply
    }

    func appendTrailer(name: Span<UInt8>, value: Span<UInt8>) throws(CurlError) {
        guard RequestWriter.field(name, value, to: &trailers) else { throw .badFunctionArgument }
    }
}
