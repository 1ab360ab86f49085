// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import ChallengeHandling
internal import Curl
internal import HTTPWire

/// One request's body on its way upstream: the replay buffer, its digests, and the trailers.
struct ExchangeBody: ~Copyable {
    private var buffer = ReplayBuffer(tiers: .none, isEmpty: true)
    private var trailers = TrailerLines()
    private var reading = BodyReading()
    /// True if the last request had a body, so that `buffer` needs a reset.
    private var isUsed = false
    /// True if the body is known to exceed the replay limit.
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

    /// True if there is room for more.
    var wantsMore: Bool { buffer.wantsMore }

    /// Appends more of the body.
    mutating func append(_ data: Span<UInt8>) { buffer.append(data) }

    /// Appends a trailer.
    mutating func append(trailer line: FieldLine, in bytes: Span<UInt8>) { trailers.append([line], in: bytes) }

    /// Marks the body as complete.
    mutating func complete() { buffer.complete() }

    // MARK: To the upstream

    /// True if the body is held from its first byte.
    var canReplay: Bool { buffer.canReplay }
    /// True if the part on disk cannot be read back.
    var isBroken: Bool { buffer.isBroken }
    /// True if all received bytes were sent, and more is to come.
    var isDrained: Bool { buffer.isDrained }

    /// Restarts at the first byte. Returns false if that is gone.
    @discardableResult
    mutating func rewind() -> Bool { buffer.rewind() }

    /// Stops holding bytes, because the request is not sent again.
    mutating func stopKeeping() { buffer.stopKeeping() }

    /// Releases the body after the exchange. A file goes at once, as a kept connection may be idle for minutes.
    mutating func discard() { buffer.discard() }

    /// Forgets the digests.
    mutating func forgetDigests() { reading = BodyReading() }

    /// Supplies the next bytes. `appendTrailer` gets the trailers before the end is reported.
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

    /// The digests of the whole body, once read.
    var digests: [BodyDigest]? { reading.digests }

    /// Begins to read the body for `digests`, if they are not known. Returns true if reading is needed.
    ///
    /// A body known to be too long is not read: the request fails at once, while the caller still has all of its body.
    mutating func beginReading(for digests: [any RunningDigest]) -> Bool {
        let isKnown = digests.allSatisfy { digest in
            reading.digests?.contains { $0.algorithm == digest.algorithm } == true
        }
        guard !isKnown, !isTooLong else { return false }
        reading.begin(digests, of: &buffer)
        return true
    }

    /// Reads more of the body for its digests.
    mutating func readMore() -> BodyReading.Step { reading.read(&buffer) }
}

/// The digests of a request's body, computed before it is sent (`auth-int` of Digest).
package struct BodyReading {
    private enum State {
        case unread
        case reading([any RunningDigest])
        case read([BodyDigest])
        case lost
    }

    /// The result of reading a part of the body.
    package enum Step: Sendable {
        /// All of the body has been read.
        case done
        /// More can be read at once.
        case more
        /// More has to come from the caller.
        case needsInput
        /// The body is longer than can be held, or cannot be read back.
        case lost
    }

    /// The bytes hashed per turn: about a millisecond with the slowest function.
    private static let share = 128 * 1024

    private var state = State.unread

    /// The digests, once the body was read.
    var digests: [BodyDigest]? { if case .read(let digests) = state { digests } else { nil } }

    /// Starts reading `body` from its first byte for `digests`.
    mutating func begin(_ digests: [any RunningDigest], of body: inout ReplayBuffer) {
        state = body.beginReading() ? .reading(digests) : .lost
    }

    /// Reads more of the body.
    mutating func read(_ body: inout ReplayBuffer) -> Step {
        guard case .reading(let digests) = state else { return .lost }
        var rest = Self.share
        while rest > 0 {
            let bytes = body.readBytes(upTo: 16_384)
            guard body.canReplay, !body.isBroken else {
                state = .lost
                return .lost
            }
            if bytes.isEmpty {
                guard body.isExhausted else { return .needsInput }
                body.endReading()
                state = .read(digests.map { BodyDigest(algorithm: $0.algorithm, bytes: $0.finish()) })
                return .done
            }
            for digest in digests { digest.update(bytes[...]) }
            rest -= bytes.count
        }
        return .more
    }
}
