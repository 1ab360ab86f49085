// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Synchronization

/// The disk tier of all exchanges on all workers: makes files for bodies, holds them to one budget, and knows whether
/// it works.
///
/// Nothing here fails an exchange. Where no file can be had, the body is streamed as if there were no such tier.
package final class ReplaySpool: Sendable {
    /// How often its state is told at most, in milliseconds, and how long it must have been well before that is told.
    static let quietTime: Int64 = 30_000
    /// For how long after an error of the file system no body is planned to be kept there, in milliseconds.
    static let pause: Int64 = 1_000

    private struct State {
        var failedAt = Int64.min / 2
        var told: ReplayTrouble?
        var toldAt = Int64.min / 2
    }

    /// Counters.
    package let figures = ReplayFigures()
    private let opening: @Sendable () throws(ReplayFileError) -> any ReplayFile
    private let now: @Sendable () -> Int64
    private let onChange: @Sendable (ReplayTrouble?) -> Void
    private let budget: Atomic<Int>
    /// Until when `room` is none, in milliseconds since 1970.
    private let pausedUntil = Atomic<Int64>(.min)
    /// True if the last that was told is trouble, so that a write that works costs no lock.
    private let isTroubled = Atomic<Bool>(false)
    private let state = Mutex(State())

    /// A spool whose files `opening` makes, on any worker's thread. `limit`: bytes of all bodies together. `now` tells
    /// milliseconds since 1970. `onChange` is told, on any thread and at most every `quietTime`, when bodies can be kept
    /// on disk no more, and (`nil`) when they can again.
    package init(
        limit: Int, now: @escaping @Sendable () -> Int64,
        onChange: @escaping @Sendable (ReplayTrouble?) -> Void = { _ in },
        opening: @escaping @Sendable () throws(ReplayFileError) -> any ReplayFile
    ) {
        budget = Atomic(max(0, limit))
        self.now = now
        self.onChange = onChange
        self.opening = opening
    }

    /// A spool of unnamed files in `directory`.
    package convenience init(
        directory: String, limit: Int, now: @escaping @Sendable () -> Int64,
        onChange: @escaping @Sendable (ReplayTrouble?) -> Void = { _ in }
    ) {
        self.init(limit: limit, now: now, onChange: onChange) { () throws(ReplayFileError) in
            try UnnamedFile(directory: directory)
        }
    }

    /// How many bytes all bodies may take together. What is there already stays.
    package var limit: Int {
        get { budget.load(ordering: .relaxed) }
        set { budget.store(max(0, newValue), ordering: .relaxed) }
    }

    /// How many bytes there is room for now, for planning; only `SpooledBody.write` is sure of it.
    package var room: Int {
        if isTroubled.load(ordering: .relaxed), now() < pausedUntil.load(ordering: .relaxed) { return 0 }
        return max(0, limit - figures.bytesInUse)
    }

    /// A file for one body; `nil` where none can be made.
    func makeFile() -> SpooledBody? {
        do throws(ReplayFileError) {
            return SpooledBody(file: try opening(), spool: self)
        } catch {
            failed(.opening(error.number))
            return nil
        }
    }

    /// Takes `count` bytes of the budget. False where it has not so many left.
    func reserve(_ count: Int) -> Bool {
        let limit = limit
        guard figures.use(count) <= limit else {
            figures.use(-count)
            failed(.budget(limit))
            return false
        }
        return true
    }

    /// Gives bytes of the budget back.
    func giveBack(_ count: Int) { figures.use(-count) }

    /// Something did not work.
    func failed(_ trouble: ReplayTrouble) {
        let now = now()
        if case .budget = trouble {} else { pausedUntil.store(now + Self.pause, ordering: .relaxed) }
        let isNews = state.withLock { state in
            state.failedAt = now
            guard state.told != trouble, now - state.toldAt >= Self.quietTime else { return false }
            state.told = trouble
            state.toldAt = now
            return true
        }
        isTroubled.store(true, ordering: .relaxed)
        if isNews { onChange(trouble) }
    }

    /// A body was written.
    func worked() {
        guard isTroubled.load(ordering: .relaxed) else { return }
        let now = now()
        let isNews = state.withLock { state in
            guard now - state.failedAt >= Self.quietTime else { return false }
            isTroubled.store(false, ordering: .relaxed)
            guard state.told != nil else { return false }
            state.told = nil
            state.toldAt = now
            return true
        }
        if isNews { onChange(nil) }
    }
}
