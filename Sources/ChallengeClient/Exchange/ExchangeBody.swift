// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import ChallengeHandling
internal import Curl
internal import HTTPWire

/// One request's body on its way upstream: what is kept of it, its digests, and the fields after it.
struct ExchangeBody: ~Copyable {
    private var buffer = ReplayBuffer(tiers: .none, isEmpty: true)
    private var trailers = TrailerLines()
    private var reading = BodyReading()
    /// True if the last request had one, so that `buffer` is not what it was at the beginning.
    private var isUsed = false
    /// True if the body is known to be longer than what is kept.
    private(set) var isTooLong = false

    /// Begins with the body of another request.
    mutating func begin(
        _ request: ExchangeRequest, keeping tiers: ReplayTiers, canBeChallenged: Bool, spool: ReplaySpool?
    ) {
        trailers.removeAll()
        guard request.hasBody else {
            if isUsed { buffer.reset(tiers: .none, spool: nil, isEmpty: true) }
            isUsed = false
            isTooLong = false
            return
        }
        isUsed = true
        let keeping = tiers.keeping(bodyOf: request, canBeChallenged: canBeChallenged, spool: spool)
        isTooLong = keeping.isTooLong
        buffer.reset(tiers: keeping.tiers, spool: spool, isEmpty: false)
    }

    // MARK: From the caller

    /// True if there is room for more of it.
    var wantsMore: Bool { buffer.wantsMore }

    /// Takes more of it.
    mutating func append(_ data: Span<UInt8>) { buffer.append(data) }

    /// Takes a field that came after it.
    mutating func append(trailer line: FieldLine, in bytes: Span<UInt8>) { trailers.append([line], in: bytes) }

    /// All of it has come.
    mutating func complete() { buffer.complete() }

    // MARK: To the upstream

    /// True if it is held from its first byte.
    var canReplay: Bool { buffer.canReplay }
    /// True if what was kept on disk cannot be read back.
    var isBroken: Bool { buffer.isBroken }
    /// True if all that has come was sent, and more is to come.
    var isDrained: Bool { buffer.isDrained }

    /// Begins again with the first byte. False if that is gone.
    @discardableResult
    mutating func rewind() -> Bool { buffer.rewind() }

    /// The request is not sent again.
    mutating func stopKeeping() { buffer.stopKeeping() }

    /// The exchange is over; a file is given back at once, for a kept connection may rest for minutes.
    mutating func discard() { buffer.discard() }

    /// Forgets the digests.
    mutating func forgetDigests() { reading = BodyReading() }

    /// Hands out what comes next. `appendTrailer`: for the fields after it, before its end is told.
    mutating func supply(
        into space: UnsafeMutableRawBufferPointer,
        appendTrailer: (_ name: Span<UInt8>, _ value: Span<UInt8>) throws(CurlError) -> Void
    ) -> BodySupply {
        let count = unsafe buffer.read(into: space)
        if count > 0 { return .bytes(count) }
        if buffer.isBroken { return .abort }
        guard buffer.isExhausted else { return .pause }
        if trailers.isEmpty { return .end }
        do throws(CurlError) {
            try trailers.forEach { (name, value) throws(CurlError) in try appendTrailer(name, value) }
            return .end
        } catch {
            return .abort
        }
    }

    // MARK: Digests

    /// The digests of the whole body, if it was read.
    var digests: [BodyDigest]? { reading.digests }

    /// Begins to read it for `digests`, if they are not known. Returns whether that is needed.
    ///
    /// One that is known to be too long is not read: the request then fails at once, while all of it is still the caller's.
    mutating func beginReading(for digests: [any RunningDigest]) -> Bool {
        let isKnown = digests.allSatisfy { digest in
            reading.digests?.contains { $0.algorithm == digest.algorithm } == true
        }
        guard !isKnown, !isTooLong else { return false }
        reading.begin(digests, of: &buffer)
        return true
    }

    /// Reads some more of it for its digests.
    mutating func readOn() -> BodyReading.Step { reading.read(&buffer) }
}
