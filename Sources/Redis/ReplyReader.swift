// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import CHiredis

/// Reads replies out of bytes that come in pieces, by hiredis. It does no I/O.
///
/// hiredis keeps what is not read yet and knows no bound but a depth of seven lists; the bounds are set here. What it reads it
/// tells as it goes, and nothing is made of a list's announced length before its elements are there.
@safe
package struct ReplyReader: ~Copyable {
    /// How much one reply may be.
    package struct Limits: Sendable, Equatable {
        /// The bytes of a reply, as they come.
        package var bytes: Int
        /// Its elements in all, those of lists within it included.
        package var elements: Int
        /// The bytes of one line: a word, an error, a number, a length.
        package var line: Int

        /// Limits.
        package init(bytes: Int = 4 << 20, elements: Int = 16_384, line: Int = 16_384) {
            self.bytes = bytes
            self.elements = elements
            self.line = line
        }
    }

    /// How much is handed to hiredis at once, in bytes: it moves what is left to the front after each reply.
    private static let portion = 16_384

    private let limits: Limits
    private let pieces: ReplyPieces
    private let reader: UnsafeMutablePointer<redisReader>?
    /// What came and is not with hiredis yet, and where it begins.
    private var input: [UInt8] = []
    private var start = 0
    private var failure: ReplyError?

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

    /// Takes the next bytes. How many it keeps is for whoever feeds it to bound: it asks for all replies in between.
    package mutating func feed(_ bytes: Span<UInt8>) {
        if start == input.count {
            input.removeAll(keepingCapacity: true)
            start = 0
        }
        unsafe bytes.withUnsafeBytes { unsafe input.append(contentsOf: $0) }
    }

    /// The next reply that is complete; `nil`: more bytes are needed. After an error it throws that for ever.
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

    /// Gives hiredis the next portion.
    private mutating func hand() throws(ReplyError) {
        guard let reader = unsafe reader else { throw .outOfMemory }
        let end = min(start + Self.portion, input.count)
        let code = unsafe input.withUnsafeBytes { bytes in
            let portion = unsafe UnsafeRawBufferPointer(rebasing: bytes[start..<end])
            return unsafe redisReaderFeed(
                reader, portion.baseAddress?.assumingMemoryBound(to: CChar.self), portion.count)
        }
        start = end
        guard code == REDIS_OK else { throw .outOfMemory }
    }

    private mutating func read() throws(ReplyError) -> Reply? {
        guard let reader = unsafe reader else { throw .outOfMemory }
        var root: UnsafeMutableRawPointer?
        let code = unsafe redisReaderGetReply(reader, &root)
        if let refusal = pieces.refusal { throw refusal }
        guard code == REDIS_OK else {
            if unsafe reader.pointee.err == REDIS_ERR_OOM { throw .outOfMemory }
            throw unsafe chiredis_is_too_deep(reader) ? .tooDeep : .malformed
        }
        if unsafe root != nil { return pieces.take() }
        guard pieces.bytes <= limits.bytes,
            unsafe Int(clamping: chiredis_waiting(reader)) <= limits.bytes - pieces.bytes,
            unsafe Int(clamping: chiredis_open_line(reader)) <= limits.line
        else { throw .tooLong }
        return nil
    }
}
