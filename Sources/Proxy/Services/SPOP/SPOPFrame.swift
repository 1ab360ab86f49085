// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import HTTPWire

/// A frame from HAProxy (SPOE.txt section 3.2): four bytes of length, then its type, flags, two numbers and what it carries.
struct SPOPFrame: Equatable {
    enum Kind: Equatable {
        case hello
        case disconnect
        case notify
        /// Of a type that nobody here knows, which may be skipped.
        case unknown
    }

    /// What every peer has to take, in bytes.
    static let smallest = 256
    /// What is taken here, in bytes: with its length it fills the window that is read ahead.
    static let largest = CallerStream.inputWindow - lengthBytes
    static let lengthBytes = 4

    let kind: Kind
    /// Which stream of HAProxy's it belongs to, and which of its frames it is: an answer repeats them.
    let stream: UInt64
    let number: UInt64
    /// What it carries.
    let payload: ByteRange
    /// The number of bytes of the whole.
    let length: Int

    /// The frame at the beginning of `bytes`, of at most `limit` bytes behind its length; `nil`: it is not whole yet.
    static func read(_ bytes: Span<UInt8>, limit: Int) throws(SPOPFault) -> SPOPFrame? {
        guard bytes.count >= lengthBytes else { return nil }
        var count = 0
        for index in 0..<lengthBytes { count = count << 8 | Int(bytes[index]) }
        guard count <= limit else { throw .frameTooBig }
        let end = lengthBytes + count
        guard bytes.count >= end else { return nil }
        var scanner = SPOPScanner(ByteRange(start: lengthBytes, end: end))
        let type = try scanner.byte(in: bytes)
        var flags: UInt32 = 0
        for _ in 0..<4 { flags = flags << 8 | UInt32(try scanner.byte(in: bytes)) }
        // Nobody here has said that he could put fragments together.
        guard type != 0, flags & 1 != 0 else { throw .fragmentationUnsupported }
        let kind: Kind =
            switch type {
            case 1: .hello
            case 2: .disconnect
            case 3: .notify
            default: .unknown
            }
        let (stream, number) = (try scanner.number(in: bytes), try scanner.number(in: bytes))
        return SPOPFrame(
            kind: kind, stream: stream, number: number,
            payload: ByteRange(start: scanner.position, end: end), length: end)
    }
}
