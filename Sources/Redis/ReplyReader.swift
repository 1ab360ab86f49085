// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import CHiredis

/// Reads replies from bytes that come in pieces, with hiredis and without I/O.
///
/// hiredis buffers unread bytes and has no limit but a depth of seven lists; the other limits are set here. No memory is reserved for
/// the announced length of a list before its elements are there.
@safe
package struct ReplyReader: ~Copyable {
    /// Limits of one reply.
    package struct Limits: Sendable, Equatable {
        /// The bytes of a reply, as they come.
        package var bytes: Int
        /// Limit of all elements, including those of inner lists.
        package var elements: Int
        /// Limit of the bytes of one line: a status, an error, a number, a length.
        package var line: Int

        /// Limits in bytes, elements, and bytes of a line.
        package init(bytes: Int = 4 << 20, elements: Int = 16_384, line: Int = 16_384) {
            self.bytes = bytes
            self.elements = elements
            self.line = line
        }
    }

    /// Bytes handed to hiredis at once. It moves the rest to the front after each reply.
    private static let portion = 16_384

    private let limits: Limits
    private let pieces: ReplyPieces
    private let reader: UnsafeMutablePointer<redisReader>?
    /// Bytes that hiredis does not have yet, and the index of the first.
    private var input: [UInt8] = []
    private var start = 0
    private var failure: ReplyError?
    /// True if hiredis waits for the end of a line, for which it searches from the line's beginning each time.
    private var isLineOpen = false
    /// True if bytes that hiredis has not searched may end a line.
    private var mayEndLine = true

    /// A reader before the first byte.
    package init(limits: Limits = Limits()) {
        self.limits = limits
        let pieces = ReplyPieces(limits)
        self.pieces = pieces
        // Not retained: the reader is freed before they are.
        unsafe reader = chiredis_reader(ReplyPieces.functions, Unmanaged.passUnretained(pieces).toOpaque())
        if unsafe reader == nil { failure = .outOfMemory }
    }

    deinit {
        if let reader = unsafe reader { unsafe redisReaderFree(reader) }
        withExtendedLifetime(pieces) {}
    }

    /// Takes the next bytes. The caller limits them: it reads all replies in between.
    package mutating func feed(_ bytes: Span<UInt8>) {
        if start == input.count {
            input.removeAll(keepingCapacity: true)
            start = 0
        }
        unsafe bytes.withUnsafeBytes { unsafe input.append(contentsOf: $0) }
    }

    /// Returns the next complete reply; `nil` if more bytes are needed. An error is thrown again by each later call.
    package mutating func next() throws(ReplyError) -> Reply? {
        if let failure { throw failure }
        do throws(ReplyError) {
            while true {
                if let reply = try read() { return reply }
                guard start < input.count else { return nil }
                try hand()
            }
        } catch {
            failure = error
            input = []
            start = 0
            throw error
        }
    }

    /// Hands the next portion to hiredis.
    private mutating func hand() throws(ReplyError) {
        guard let reader = unsafe reader else { throw .outOfMemory }
        let end = min(start + Self.portion, input.count)
        let code = unsafe input.withUnsafeBytes { bytes in
            let portion = unsafe UnsafeRawBufferPointer(rebasing: bytes[start..<end])
            return unsafe redisReaderFeed(
                reader, portion.baseAddress?.assumingMemoryBound(to: CChar.self), portion.count)
        }
        mayEndLine = mayEndLine || input[start..<end].contains(UInt8(ascii: "\n"))
        start = end
        guard code == REDIS_OK else { throw .outOfMemory }
    }

    private mutating func read() throws(ReplyError) -> Reply? {
        guard let reader = unsafe reader else { throw .outOfMemory }
        if isLineOpen, !mayEndLine { return try checkLimits() }
        mayEndLine = false
        var root: UnsafeMutableRawPointer?
        let code = unsafe redisReaderGetReply(reader, &root)
        if let refusal = pieces.refusal { throw refusal }
        guard code == REDIS_OK else {
            if unsafe reader.pointee.err == REDIS_ERR_OOM { throw .outOfMemory }
            throw unsafe chiredis_is_too_deep(reader) ? .tooDeep : .malformed
        }
        if unsafe root != nil {
            // The rest may be another reply.
            (isLineOpen, mayEndLine) = (false, true)
            return pieces.takeReply()
        }
        return try checkLimits()
    }

    /// Throws if the waiting bytes are too long; there is no reply yet.
    private mutating func checkLimits() throws(ReplyError) -> Reply? {
        guard let reader = unsafe reader else { throw .outOfMemory }
        let line = unsafe Int(clamping: chiredis_open_line(reader))
        isLineOpen = line > 0
        guard pieces.bytes <= limits.bytes,
            unsafe Int(clamping: chiredis_waiting(reader)) <= limits.bytes - pieces.bytes, line <= limits.line
        else { throw .tooLong }
        return nil
    }
}
