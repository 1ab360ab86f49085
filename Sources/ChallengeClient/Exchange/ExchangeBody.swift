// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import ChallengeHandling
internal import Curl
internal import HTTPWire
internal import Secrets

/// One request's body on its way upstream: the replay buffer, its digests, and the trailers.
struct ExchangeBody: ~Copyable {
    private var buffer = ReplayBuffer(tiers: .none, isEmpty: true)
    private var trailers = TrailerLines()
    private var progress = BodyProgress()
    /// The body with values of the sessions, sent in place of the caller's.
    private var change = BodyChange()
    /// True if the last request had a body, so that `buffer` needs a reset.
    private var isUsed = false
    /// True if the body is known to exceed the replay limit.
    private(set) var isTooLong = false

    /// Begins with the body of another request.
    mutating func begin(
        _ request: ExchangeRequest, keeping tiers: ReplayTiers, mayNeedAgain: Bool, isReadFirst: Bool = false,
        spool: ReplaySpool?
    ) {
        trailers.removeAll()
        guard request.hasBody else {
            if isUsed { buffer.reset(tiers: .none, spool: nil, isEmpty: true) }
            isUsed = false
            isTooLong = false
            return
        }
        isUsed = true
        forgetReadings()
        let keeping = tiers.keeping(
            bodyOf: request, mayNeedAgain: mayNeedAgain, isReadFirst: isReadFirst, spool: spool)
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
    mutating func rewind() -> Bool {
        change.rewind()
        return buffer.rewind()
    }

    /// Stops holding bytes, because the request is not sent again.
    mutating func stopKeeping() { buffer.stopKeeping() }

    /// Releases the body after the exchange. A file is removed at once, because a kept connection may be idle for
    /// minutes.
    mutating func discard() { buffer.discard() }

    /// Drops the data read for signatures, and the change.
    mutating func forgetReadings() {
        progress = BodyProgress()
        change = BodyChange()
    }

    /// Supplies the next bytes. `appendTrailer` gets the trailers before the end is reported.
    mutating func supply(
        into space: UnsafeMutableRawBufferPointer,
        appendTrailer: (_ name: Span<UInt8>, _ value: Span<UInt8>) throws(CurlError) -> Void
    ) -> BodySupply {
        if let count = unsafe change.read(into: space) {
            if count > 0 { return .bytes(count) }
        } else {
            let count = unsafe buffer.read(into: space)
            if count > 0 { return .bytes(count) }
            if buffer.isBroken { return .abort }
            guard buffer.isExhausted else { return .pause }
        }
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
        if let changed = change.changed {
            progress.read(changed, by: readers)
            return false
        }
        progress.begin(readers, of: &buffer)
        return true
    }

    /// Reads more of the body for signatures, or for a change.
    mutating func readMore() -> BodyProgress.Step {
        change.isReading ? change.read(&buffer) : progress.read(&buffer)
    }

    // MARK: Change

    /// True if there are trailers to send.
    var hasTrailers: Bool { !trailers.isEmpty }

    /// Begins to read the body, to change it. Returns false if it is too long.
    mutating func beginChange() -> Bool { !isTooLong && change.begin(of: &buffer) }

    /// True while the body is read to be changed.
    var isReadForChange: Bool { change.isReading }

    /// The caller's body, once it was read to be changed.
    var original: [UInt8]? { change.original }

    /// The length of the body that is sent, if `values` have changed it.
    func length(changedBy values: RequestInjections) -> Int? { change.length(by: values) }

    /// Sends `body`, with `values`, in place of the caller's.
    mutating func change(to body: Secret, by values: RequestInjections) {
        progress = BodyProgress()
        change.finish(body, by: values)
    }

    /// Sends the caller's body.
    mutating func undoChange() {
        guard change.isBegun else { return }
        forgetReadings()
    }
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

    /// Reads a changed body, which is short, at once.
    mutating func read(_ body: Secret, by readers: [any BodyReader]) {
        let bytes = body.revealBytes()
        for reader in readers { reader.update(bytes[...]) }
        state = .read(readers.map { BodyReading($0.form, $0.finish()) })
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

// Bodies in `aws-chunked` coding, whose chunks are taken off so that the data can be signed.
extension Exchange {
    /// True if the caller's chunks are taken off, so that the fields about them must not be sent.
    package var decodesChunks: Bool { chunks != nil }
    /// The checksums after the data of an `aws-chunked` body, once it has been received.
    package var chunkChecksums: [(name: [UInt8], value: [UInt8])] {
        chunks?.trailers.filter { AWSChunkFields.isChecksum($0.name) } ?? []
    }

    func receiveChunks(_ data: Span<UInt8>) {
        do throws(AWSChunkDecoder.Fault) {
            try chunks?.decode(data) { body.append($0) }
            bodyCame()
        } catch {
            if !machine.state.hasEnded { abort(ExchangeError(error)) }
        }
    }

    /// Ends the chunks. Returns false if they are not whole, and ends the exchange.
    func finishChunks() -> Bool {
        do throws(AWSChunkDecoder.Fault) {
            try chunks?.finish()
            return true
        } catch {
            if !machine.state.hasEnded { abort(ExchangeError(error)) }
            return false
        }
    }
}
