// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Glibc
internal import Synchronization
internal import System

/// The disk tier of all exchanges on all workers: makes files, limits their total size, tracks failures.
///
/// A failure here never fails an exchange. If no file is available, the body is streamed as if there were no disk tier.
package final class ReplaySpool: Sendable {
    /// The minimum time between two reports, in milliseconds; also of good state before its report.
    static let quietTime: Int64 = 30_000
    /// The pause after a file system error, in milliseconds. No body is planned for the disk then.
    static let pause: Int64 = 1_000

    private struct State {
        var failedAt = Int64.min / 2
        var told: ReplayTrouble?
        var toldAt = Int64.min / 2
    }

    /// The counters.
    package let figures = ReplayFigures()
    private let opening: @Sendable () throws(ReplayFileError) -> any ReplayFile
    private let now: @Sendable () -> Int64
    private let onChange: @Sendable (ReplayTrouble?) -> Void
    private let budget: Atomic<Int>
    /// The end of the pause in which `room` is 0, in milliseconds since 1970.
    private let pausedUntil = Atomic<Int64>(.min)
    /// True after trouble, until the spool works again; a write that works then costs no lock.
    private let isTroubled = Atomic<Bool>(false)
    private let state = Mutex(State())

    /// Creates a spool.
    ///
    /// `opening` makes its files, on any worker's thread. `limit`: bytes of all bodies together. `now`: milliseconds
    /// since 1970. `onChange` is called, on any thread and at most every `quietTime`, when bodies can no longer be held
    /// on disk, and with `nil` when they can again.
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

    /// Creates a spool of unnamed files in `directory`.
    package convenience init(
        directory: String, limit: Int, now: @escaping @Sendable () -> Int64,
        onChange: @escaping @Sendable (ReplayTrouble?) -> Void = { _ in }
    ) {
        self.init(limit: limit, now: now, onChange: onChange) { () throws(ReplayFileError) in
            try UnnamedFile(directory: directory)
        }
    }

    /// The limit of all bodies together, in bytes. Existing files stay.
    package var limit: Int {
        get { budget.load(ordering: .relaxed) }
        set { budget.store(max(0, newValue), ordering: .relaxed) }
    }

    /// The free bytes of the budget, for planning; only `SpooledBody.write` reserves them.
    package var room: Int {
        if isTroubled.load(ordering: .relaxed), now() < pausedUntil.load(ordering: .relaxed) { return 0 }
        return max(0, limit - figures.bytesInUse)
    }

    /// Returns a file for one body, or `nil` if no file can be made.
    func makeFile() -> SpooledBody? {
        do throws(ReplayFileError) {
            return SpooledBody(file: try opening(), spool: self)
        } catch {
            recordFailure(.opening(error.number))
            return nil
        }
    }

    /// Reserves `count` bytes of the budget. Returns false if not enough are left.
    func reserve(_ count: Int) -> Bool {
        let limit = limit
        guard figures.use(count) <= limit else {
            figures.use(-count)
            recordFailure(.budget(limit))
            return false
        }
        return true
    }

    /// Returns `count` bytes to the budget.
    func release(_ count: Int) { figures.use(-count) }

    /// Records a failure, and reports the trouble if it is new.
    func recordFailure(_ trouble: ReplayTrouble) {
        let now = now()
        if case .budget = trouble {} else { pausedUntil.store(now + Self.pause, ordering: .relaxed) }
        let isChange = state.withLock { state in
            state.failedAt = now
            guard state.told != trouble, now - state.toldAt >= Self.quietTime else { return false }
            state.told = trouble
            state.toldAt = now
            return true
        }
        isTroubled.store(true, ordering: .relaxed)
        if isChange { onChange(trouble) }
    }

    /// Records a successful write, and reports the end of trouble.
    func recordSuccess() {
        guard isTroubled.load(ordering: .relaxed) else { return }
        let now = now()
        let isChange = state.withLock { state in
            guard now - state.failedAt >= Self.quietTime else { return false }
            isTroubled.store(false, ordering: .relaxed)
            guard state.told != nil else { return false }
            state.told = nil
            state.toldAt = now
            return true
        }
        if isChange { onChange(nil) }
    }
}

/// The reason why request bodies are currently not held on disk.
///
/// Requests continue; only a challenge in their middle is then answered by `body-not-replayable`.
package enum ReplayTrouble: Sendable, Equatable {
    /// All bodies together have used up their budget of that many bytes.
    case budget(Int)
    /// No file can be made; the system's error number.
    case opening(Int32)
    /// A file cannot be read back; the system's error number.
    case reading(Int32)
    /// A file cannot be written, most often because the file system is full; the system's error number.
    case writing(Int32)

    /// The cause and the remedy, for the log.
    package var reason: String {
        switch self {
        case .budget(let limit):
            "all \(limit) bytes allowed for request bodies on disk are in use; raise `limits.replay`"
        case .opening(let number):
            """
            no file can be created in the runtime directory: \(Self.text(number)); check $RUNTIME_DIRECTORY, or set \
            `replay.disk: 0` for the upstreams
            """
        case .reading(let number):
            "a file in the runtime directory cannot be read back: \(Self.text(number))"
        case .writing(let number):
            """
            a file in the runtime directory cannot be written: \(Self.text(number)); make room there, or lower \
            `limits.replay`
            """
        }
    }

    private static func text(_ number: Int32) -> String {
        SystemError.message(number)
    }
}

/// Counters of held and replayed request bodies.
///
/// All workers write each of them with one relaxed addition, per window or per exchange.
package final class ReplayFigures: Sendable {
    private let inUse = Atomic<Int>(0)
    private let fromMemory = Atomic<Int>(0)
    private let fromDisk = Atomic<Int>(0)
    private let fromCallers = Atomic<Int>(0)
    private let unreplayable = Atomic<Int>(0)

    /// Bytes of bodies on disk now.
    package var bytesInUse: Int { inUse.load(ordering: .relaxed) }
    /// Bytes ever replayed from memory.
    package var bytesFromMemory: Int { fromMemory.load(ordering: .relaxed) }
    /// Bytes ever replayed from disk.
    package var bytesFromDisk: Int { fromDisk.load(ordering: .relaxed) }
    /// Bytes of replayed requests that came from the caller, after the part sent before.
    package var bytesFromCallers: Int { fromCallers.load(ordering: .relaxed) }
    /// Exchanges ever answered by `body-not-replayable`.
    package var unreplayableExchanges: Int { unreplayable.load(ordering: .relaxed) }

    /// Creates counters at zero.
    init() {}

    /// Adds `count` to the bytes on disk, and returns the new number.
    @discardableResult
    func use(_ count: Int) -> Int { inUse.wrappingAdd(count, ordering: .relaxed).newValue }

    func replayed(memory: Int, disk: Int, stream: Int) {
        if memory > 0 { fromMemory.wrappingAdd(memory, ordering: .relaxed) }
        if disk > 0 { fromDisk.wrappingAdd(disk, ordering: .relaxed) }
        if stream > 0 { fromCallers.wrappingAdd(stream, ordering: .relaxed) }
    }

    func wasNotReplayable() { unreplayable.wrappingAdd(1, ordering: .relaxed) }
}
