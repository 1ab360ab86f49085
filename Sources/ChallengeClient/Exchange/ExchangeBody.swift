// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import ChallengeHandling
internal import Curl
internal import HTTPWire

/// One request's body on its way upstream: the replay buffer, its digests, and the trailers.
struct ExchangeBody: ~Copyable {
    private var buffer = ReplayBuffer(tiers: .none, isEmpty: true)
    private var trailers = TrailerLines()
    private var progress = BodyProgress()
    /// True if the last request had a body, so that `buffer` needs a reset.
    private var isUsed = false
    /// True if the body is known to exceed the replay limit.
    private(set) var isTooLong = false

    /// Begins with the body of another request.
    mutating func begin(
        _ request: ExchangeRequest, keeping tiers: ReplayTiers, mayNeedAgain: Bool, spool: ReplaySpool?
    ) {
        trailers.removeAll()
        guard request.hasBody else {
            if isUsed { buffer.reset(tiers: .none, spool: nil, isEmpty: true) }
            isUsed = false
            isTooLong = false
            return
        }
        isUsed = true
        let keeping = tiers.keeping(bodyOf: request, mayNeedAgain: mayNeedAgain, spool: spool)
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

    /// Forgets what was read for signatures.
    mutating func forgetReadings() { progress = BodyProgress() }

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

    // MARK: Signatures

    /// The whole body in the forms that signatures need, once read.
    var readings: [BodyReading]? { progress.readings }

    /// Begins to read the body by `readers`, if their forms are not known. Returns true if reading is needed.
    ///
    /// A body known to be too long is not read: the request fails at once, while the caller still has all of its body.
    mutating func beginReading(by readers: [any BodyReader]) -> Bool {
        let isKnown = readers.allSatisfy { reader in
            progress.readings?.contains { $0.form == reader.form } == true
        }
        guard !isKnown, !isTooLong else { return false }
        progress.begin(readers, of: &buffer)
        return true
    }

    /// Reads more of the body for signatures.
    mutating func readMore() -> BodyProgress.Step { progress.read(&buffer) }
}

/// The progress of reading a request's body for signatures, before it is sent (`auth-int` of Digest).
package struct BodyProgress {
    private enum State {
        case unread
        case reading([any BodyReader])
        case read([BodyReading])
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

    /// The readings, once the body was read.
    var readings: [BodyReading]? { if case .read(let readings) = state { readings } else { nil } }

    /// Starts reading `body` from its first byte by `readers`.
    mutating func begin(_ readers: [any BodyReader], of body: inout ReplayBuffer) {
        state = body.beginReading() ? .reading(readers) : .lost
    }

    /// Reads more of the body.
    mutating func read(_ body: inout ReplayBuffer) -> Step {
        guard case .reading(let readers) = state else { return .lost }
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
                state = .read(readers.map { BodyReading($0.form, $0.finish()) })
                return .done
            }
            for reader in readers { reader.update(bytes[...]) }
            rest -= bytes.count
        }
        return .more
    }
}
