// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Curl
internal import HTTPWire

// The response as it comes in.
extension HTTP1Stream {
    /// Feeds the transfer with what is there: a head when it is whole, the body as it comes. Whether it takes more.
    func feed() -> Bool {
        while isRunning, !input.isEmpty {
            guard transfer.isHeadComplete else {
                if feedHead() { continue }
                return isRunning
            }
            // What is behind a 101 is another protocol's; what is behind an answer belongs to no request.
            guard transfer.answer.status != 101, !transfer.isAnswered else { return false }
            switch unsafe input.withUnsafeBytes({ unsafe transfer.take(body: $0) }) {
            case .consumed: input.removeAll()
            case .pause: return false
            case .abort where transfer.isAnswered: return false
            case .abort: finish(.writeError)
            }
        }
        return isRunning
    }

    /// False where no whole head is there, or the transfer does not take it.
    private func feedHead() -> Bool {
        guard let length = input.withSpan({ endOfHead(in: $0) }) else {
            // The transfer says when a head is too long, but sees none that has no end.
            if input.count > Transfer.headLimit {
                _ = transfer.refuse(.headTooLarge)
                finish(.writeError)
            }
            return false
        }
        searched = 0
        lineStart = 0
        let isTaken = unsafe input.withUnsafeBytes { bytes in
            unsafe take(head: UnsafeRawBufferPointer(rebasing: bytes.prefix(length)))
        }
        input.consume(length)
        if !isTaken {
            finish(.writeError)
        } else if transfer.upload.wasContinued {
            stopWaiting()
        }
        return isTaken
    }

    private func take(head bytes: UnsafeRawBufferPointer) -> Bool {
        guard bytes.count > 5, unsafe bytes[5] == UInt8(ascii: "1") else {
            return transfer.refuse(.statusLineInvalid) != .refused
        }
        guard unsafe transfer.head.append(bytes, upTo: Transfer.headLimit) else {
            return transfer.refuse(.headTooLarge) != .refused
        }
        switch transfer.scanHead() {
        case .refused: return false
        case .interim: return true
        case .final: break
        }
        transfer.beginBody()
        if transfer.isUntilEnd { watchClosure() }
        return true
    }

    /// Where the head ends: behind the first line that begins with CR or LF, whatever else it holds; the scanner judges that.
    private func endOfHead(in bytes: Span<UInt8>) -> Int? {
        while let lineFeed = bytes.firstLineFeed(from: searched) {
            let first = bytes[lineStart]
            searched = lineFeed + 1
            lineStart = searched
            if first == 0x0D || first == 0x0A { return searched }
        }
        searched = bytes.count
        return nil
    }
}
