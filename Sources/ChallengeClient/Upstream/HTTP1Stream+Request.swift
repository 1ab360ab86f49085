// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Curl
internal import Glibc
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
        return !transfer.upload.isComplete && !transfer.awaitsBody && !awaitsContinue && !sendsNoMore
    }

    private func fill() {
        guard wantsBody else { return }
        let length = transfer.upload.next(upTo: Self.bodyPiece)
        var supply = BodySupply.pause
        // Room for the size of the chunk before it and the end of its line behind it.
        let (before, behind) = isChunked ? (Self.longestSize + 2, 2) : (0, 0)
        unsafe output.withUnsafeFreeSpace(minimum: before + length + behind) { space in
            let data = unsafe UnsafeMutableRawBufferPointer(rebasing: space[before..<before + length])
            supply = unsafe transfer.supplyBody(into: data)
            guard case .bytes(let count) = supply else { return 0 }
            return unsafe isChunked ? Self.frame(count, in: space) : count
        }
        switch supply {
        case .bytes, .pause: break
        case .end:
            guard isChunked else { break }
            output.append("0\r\n")
            trailers.withSpan { output.append($0) }
            trailers.removeAll(keepingCapacity: 0)
            output.append("\r\n")
        case .abort: finish(.abortedByCallback)
        }
    }

    /// As many digits as the size of the longest chunk has.
    private static let longestSize = 5

    /// Makes a chunk (RFC 9112 section 7.1) of `count` bytes that stand behind the room for its size. Returns how long it is.
    private static func frame(_ count: Int, in space: UnsafeMutableRawBufferPointer) -> Int {
        let digits = max(1, (Int.bitWidth - count.leadingZeroBitCount + 3) / 4)
        for place in 0..<digits {
            let digit = UInt8(truncatingIfNeeded: count >> ((digits - 1 - place) * 4)) & 15
            unsafe space[place] = digit < 10 ? 48 + digit : 87 + digit
        }
        unsafe space[digits] = 0x0D
        unsafe space[digits + 1] = 0x0A
        let start = digits + 2
        if digits < longestSize, let base = space.baseAddress {
            // The two may overlap.
            unsafe memmove(base + start, base + longestSize + 2, count)
        }
        unsafe space[start + count] = 0x0D
        unsafe space[start + count + 1] = 0x0A
        return start + count + 2
    }

    func appendTrailer(name: Span<UInt8>, value: Span<UInt8>) throws(CurlError) {
        guard RequestWriter.field(name, value, to: &trailers) else { throw .badFunctionArgument }
    }
}
