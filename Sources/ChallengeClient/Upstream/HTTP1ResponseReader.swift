// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Curl
internal import HTTPWire

/// The answer to one request, read from the bytes of a connection (RFC 9112 §2.2) into a transfer.
///
/// Heads are handed over whole, the body as it comes; the transfer judges both. What follows the answer is not touched.
enum HTTP1ResponseReader: Equatable {
    /// A head, interim or final. The bytes before `searched` hold no end of its present line, which begins at `lineStart`.
    case head(searched: Int, lineStart: Int)
    /// The body of the answer.
    case body
    /// The end of the answer. What follows belongs to no request.
    case whole
    /// The bytes of another protocol (RFC 9110 §15.2.2).
    case switched

    typealias Action = HTTP1ClientMachine.ReadAction

    /// The reader of an answer of which nothing has come.
    static let start = head(searched: 0, lineStart: 0)

    /// Takes the next step in `bytes`, which are all that have come and are not done with.
    mutating func read(_ bytes: Span<UInt8>, into transfer: Transfer) -> Action {
        switch self {
        case .head(var searched, var lineStart):
            guard let length = Self.endOfHead(in: bytes, &searched, &lineStart) else {
                self = .head(searched: searched, lineStart: lineStart)
                // The transfer says when a head is too long, but sees none that has no end.
                guard bytes.count > Transfer.headLimit else { return .wait }
                _ = transfer.refuse(.headTooLarge)
                return .refuse
            }
            self = .start
            return take(head: bytes.extracting(..<length), into: transfer)
        case .body:
            return take(body: bytes, into: transfer)
        case .whole, .switched:
            return .stop
        }
    }

    private mutating func take(head: Span<UInt8>, into transfer: Transfer) -> Action {
        switch Self.judge(head, for: transfer) {
        case .refused: return .refuse
        case .interim: return .takeInterim(length: head.count, endsWait: false)
        case .final: break
        }
        transfer.beginBody()
        let status = transfer.answer.status
        self = status == 101 ? .switched : transfer.isAnswered ? .whole : .body
        return .takeHead(length: head.count, status: status, isUntilEnd: transfer.isUntilEnd)
    }

    private static func judge(_ head: Span<UInt8>, for transfer: Transfer) -> Transfer.HeadKind {
        // The scanner takes the later versions, too, as libcurl writes them.
        guard head.count > 5, head[5] == UInt8(ascii: "1") else { return transfer.refuse(.statusLineInvalid) }
        let isTaken = unsafe head.withUnsafeBytes { unsafe transfer.head.append($0, upTo: Transfer.headLimit) }
        return isTaken ? transfer.scanHead() : transfer.refuse(.headTooLarge)
    }

    private mutating func take(body bytes: Span<UInt8>, into transfer: Transfer) -> Action {
        let disposition = unsafe bytes.withUnsafeBytes { unsafe transfer.take(body: $0) }
        if disposition != .pause, transfer.isAnswered { self = .whole }
        switch disposition {
        case .consumed: return .takeBody(length: bytes.count)
        case .pause: return .stop
        // What came after the answer is left where it is, and so the connection takes no other request.
        case .abort: return self == .whole ? .stop : .refuse
        }
    }

    /// Returns the length of the head: it ends with the first line that begins with CR or LF. The scanner judges what else that line
    /// holds.
    private static func endOfHead(in bytes: Span<UInt8>, _ searched: inout Int, _ lineStart: inout Int) -> Int? {
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
