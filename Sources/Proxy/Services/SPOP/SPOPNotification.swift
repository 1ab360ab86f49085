// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import HTTPWire

/// The request that HAProxy asks about: the one message `authorize` of a frame, with what HAProxy calls `method`, `pathq` and `req.hdrs`.
struct SPOPNotification: Equatable {
    /// Why it is not clear which request is meant.
    enum Fault: Error, Equatable {
        /// There is not one message, or not of that name.
        case messageUnknown
        /// One of the three arguments is missing, there twice, or no text.
        case argumentsIncomplete
        /// An argument has what would end it, or begin another line.
        case argumentInvalid
    }

    private let method: ByteRange
    private let target: ByteRange
    private let fields: ByteRange

    /// What a frame carries. Throws where it is no list of messages.
    static func read(_ payload: ByteRange, in bytes: Span<UInt8>) throws(SPOPFault) -> Result<SPOPNotification, Fault> {
        var scanner = SPOPScanner(payload)
        var isKnown = false
        var arguments = Arguments()
        var count = 0
        while !scanner.isAtEnd {
            isKnown = bytes.matches(try scanner.text(in: bytes), exactly: "authorize")
            count += 1
            for _ in 0..<(try scanner.byte(in: bytes)) {
                let name = try scanner.text(in: bytes)
                arguments.take(name, try scanner.value(in: bytes), in: bytes)
            }
        }
        guard isKnown, count == 1 else { return .failure(.messageUnknown) }
        guard !arguments.isAmbiguous, let method = arguments.method, let target = arguments.target,
            let fields = arguments.fields
        else { return .failure(.argumentsIncomplete) }
        guard isWord(method, in: bytes), isWord(target, in: bytes) else { return .failure(.argumentInvalid) }
        return .success(SPOPNotification(method: method, target: target, fields: fields))
    }

    /// Writes it as the head that it was. A parser makes of it what it would make of a caller's own.
    func writeHead(in bytes: Span<UInt8>, to head: inout ByteQueue) {
        head.append(bytes.extracting(method.bounds))
        head.append(UInt8(ascii: " "))
        head.append(bytes.extracting(target.bounds))
        head.append(" HTTP/1.1\r\n")
        head.append(bytes.extracting(fields.bounds))
    }

    private struct Arguments {
        var method: ByteRange?
        var target: ByteRange?
        var fields: ByteRange?
        /// True if one of the three is there twice.
        private(set) var isAmbiguous = false
        private var seen: UInt8 = 0

        mutating func take(_ name: ByteRange, _ value: SPOPScanner.Value, in bytes: Span<UInt8>) {
            let text: ByteRange? = if case .text(let range) = value { range } else { nil }
            let bit: UInt8
            if bytes.matches(name, exactly: "method") {
                (method, bit) = (text, 1)
            } else if bytes.matches(name, exactly: "target") {
                (target, bit) = (text, 2)
            } else if bytes.matches(name, exactly: "fields") {
                (fields, bit) = (text, 4)
            } else {
                return
            }
            if seen & bit != 0 { isAmbiguous = true }
            seen |= bit
        }
    }

    /// True if it can stand in a request line: neither space nor any control character is in it (RFC 9112 section 3).
    private static func isWord(_ range: ByteRange, in bytes: Span<UInt8>) -> Bool {
        guard !range.isEmpty else { return false }
        for index in range.bounds where bytes[index] <= 0x20 || bytes[index] == 0x7F { return false }
        return true
    }
}
