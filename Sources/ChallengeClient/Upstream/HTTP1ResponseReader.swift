// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import ChallengeHandling
internal import Curl
internal import FieldBytes
internal import HTTPTypes
internal import HTTPWire

/// The reader of one request's answer from a connection into a transfer (RFC 9112 §2.2).
///
/// Heads are passed on complete, the body as received; the transfer validates both. Bytes after the answer are not
/// consumed.
enum HTTP1ResponseReader: Equatable {
    /// A head, interim or final. The current line begins at `lineStart`, and does not end before `searched`.
    case head(searched: Int, lineStart: Int)
    /// The body of the answer.
    case body
    /// The end of the answer. Bytes that follow belong to no request.
    case whole
    /// The bytes of another protocol (RFC 9110 §15.2.2).
    case switched

    typealias Action = HTTP1ClientMachine.ReadAction

    /// The reader before the first byte of an answer.
    static let start = head(searched: 0, lineStart: 0)

    /// Processes the next part of `bytes`, which holds everything received and not consumed.
    mutating func read(_ bytes: Span<UInt8>, into transfer: Transfer) -> Action {
        switch self {
        case .head(var searched, var lineStart):
            guard let length = Self.endOfHead(in: bytes, &searched, &lineStart) else {
                self = .head(searched: searched, lineStart: lineStart)
                // The transfer limits complete heads only, so that an endless one is refused here.
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
        switch Self.scan(head, for: transfer) {
        case .refused: return .refuse
        case .interim: return .takeInterim(length: head.count, endsWait: false)
        case .final: break
        }
        transfer.beginBody()
        let status = transfer.answer.status
        self = status == 101 ? .switched : transfer.isAnswered ? .whole : .body
        return .takeHead(length: head.count, status: status, isUntilEnd: transfer.isUntilEnd)
    }

    private static func scan(_ head: Span<UInt8>, for transfer: Transfer) -> Transfer.HeadKind {
        // The scanner also accepts later versions, as libcurl writes them.
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
        // Bytes after the answer stay unread, so that the connection takes no other request.
        case .abort: return self == .whole ? .stop : .refuse
        }
    }

    /// Returns the length of the head, up to the first line beginning with CR or LF.
    ///
    /// The scanner validates the rest of that line.
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

/// An upstream's response head as values.
struct ScannedHead {
    let status: Int
    let fields: HTTPFields

    private static let noFields = HTTPFields()

    /// Creates the values of `head`, whose ranges refer to `bytes`. `kinds`: only fields of these kinds.
    init(_ head: ResponseHead, in bytes: Span<UInt8>, only kinds: [FieldName]? = nil) {
        // Usually the answer has no field of these kinds, and nothing is allocated.
        var fields = Self.noFields
        for line in head.fields {
            if let kinds, !kinds.contains(line.kind) { continue }
            guard let name = HTTPField.Name(bytes.text(line.name)) else { continue }
            fields.append(HTTPField(name: name, value: Self.value(of: line, in: bytes)))
        }
        status = head.status
        self.fields = fields
    }

    /// Returns the bytes of a value, which are opaque (RFC 9110 §5.5) and may go back to the server.
    ///
    /// If reading them as text would be slow, they are the bytes of the text with broken runs of combining marks.
    private static func value(of line: FieldLine, in bytes: Span<UInt8>) -> [UInt8] {
        let value = bytes.copy(line.value)
        if value.allSatisfy({ $0 < 0x80 }) { return value }
        let text = bytes.text(line.value)
        return String(decoding: value, as: UTF8.self).utf8.elementsEqual(text.utf8) ? value : Array(text.utf8)
    }
}

extension Transfer {
    /// Returns true if `filter` admits the final head.
    func passes(_ filter: ResponseFilter) -> Bool {
        var type: ByteRange?
        for index in answer.fields.indices where answer.fields[index].kind == .contentType {
            guard type == nil else { return filter.admits(status: answer.status) }
            type = answer.fields[index].value
        }
        return head.withSpan { bytes in
            filter.admits(status: answer.status, contentType: bytes.extracting((type ?? .empty).bounds))
        }
    }
}

extension HTTPFields {
    /// Calls `body` with each field line, joining all `Cookie` fields into the first.
    ///
    /// A request has at most one `Cookie` line (RFC 6265 §5.4), but the setter `fields[.cookie]` splits its value into one field for
    /// each cookie, as HTTP/2 allows (RFC 9113 §8.2.3). Servers join such lines by commas and lose the session.
    func forEachLine<Failure>(
        _ body: (_ name: HTTPField.Name, _ value: [UInt8]) throws(Failure) -> Void
    ) throws(Failure) {
        var hasCookie = false
        for field in self {
            guard field.name == .cookie else {
                try body(field.name, unsafe field.withUnsafeBytesOfValue { unsafe Array($0) })
                continue
            }
            guard !hasCookie else { continue }
            hasCookie = true
            try body(field.name, Array(bytes(of: .cookie).joined(separator: "; ".utf8)))
        }
    }
}
