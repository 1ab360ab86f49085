// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Curl
internal import HTTPWire

// The request on its way out.
extension ExpressLine {
    /// How much of the request's body is sent at once, in bytes.
    private static let bodyPiece = 64 * 1024
    /// Up to so much memory is kept for the next request.
    private static let keptMemory = 16 * 1024

    /// Whether the rest of the request is of no interest to the upstream: it has refused it, and the connection ends with this
    /// answer (RFC 9112 section 9.3).
    var sendsNoMore: Bool { transfer.isHeadComplete && transfer.answer.status >= 300 }

    /// Sends the head, and the body behind it as far as it is here. Where none of it is here yet, the head waits for it until the
    /// end of this turn of the loop: mostly both have come from the caller at once, and so leave at once.
    func sendHead() {
        fill()
        guard transfer.awaitsBody else { return send() }
        isHeld = true
        transfer.driver.hold(self)
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

    private var wantsBody: Bool { !transfer.upload.isComplete && !transfer.awaitsBody && !sendsNoMore }

    private func fill() {
        guard wantsBody else { return }
        var isBroken = false
        let length = transfer.upload.next(upTo: Self.bodyPiece)
        unsafe output.withUnsafeFreeSpace(minimum: length) { space in
            let space = unsafe UnsafeMutableRawBufferPointer(rebasing: space.prefix(length))
            switch unsafe transfer.transferNeedsBody(space) {
            case .bytes(let count): return count
            case .end, .pause: return 0
            case .abort:
                isBroken = true
                return 0
            }
        }
        if isBroken { finish(.abortedByCallback) }
    }
}
