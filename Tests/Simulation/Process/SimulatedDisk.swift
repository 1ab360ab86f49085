// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeClient
import ChallengeHandling
import Credentials
import Secrets
import System

/// The state directory: it outlives processes, writes later than asked, and fails.
///
/// The program's own store reads and writes its files. Only the thread of the simulation uses it.
final class SimulatedDisk: AttemptStore, StateStore, @unchecked Sendable {
    private struct Mark: Hashable {
        var challenge: String
        var digest: [UInt8]
    }

    private let simulation: Simulation
    private let files: SimulatedFiles
    private let thread: StateThread
    private var attempts: SealedAttemptStore
    private var jobs: [() -> Void] = []
    /// The latches that the gate has closed, on disk or not.
    private var closed: [Mark: (latch: Latch, step: Int)] = [:]
    /// The values that the daemon knows as accepted.
    private var accepted: Set<Mark> = []
    /// The times at which the latches of each value have closed, so that each is noted once.
    private var noted: [Mark: Set<Int64>] = [:]
    /// The time at which an operator last opened the latches of each challenge, in ms since 1970.
    private var openings: [String: Int64] = [:]
    /// The steps in which latches were opened.
    private var opened: [Mark: Int] = [:]
    /// The times at which another process closed latches of each value, unknown to the daemon, in ms since 1970.
    private var elsewhere: [Mark: Set<Int64>] = [:]
    /// The latches that were ever on disk.
    private var written: Set<Mark> = []
    /// The number of writes that are not done.
    private(set) var pending = 0
    /// True if a write has failed since the last one that succeeded.
    private(set) var isBehind = false
    /// True while nothing can be written at all.
    var isDown = false
    /// The number of the process that may write.
    var process = 0

    init(_ simulation: Simulation) throws {
        self.simulation = simulation
        files = SimulatedFiles(simulation)
        thread = try StateThread()
        attempts = try SealedAttemptStore(files: files, thread: thread)
    }

    // MARK: Jobs

    /// Appends a job: one is done after the other, as by the thread of the state directory.
    private func enqueue(_ job: @escaping () -> Void) {
        jobs.append(job)
        if jobs.count == 1 { beginJob() }
    }

    private func beginJob() {
        simulation.happens(late: !isDown && simulation.isDiskFault(16)) { [self] in
            jobs[0]()
            jobs.removeFirst()
            if !jobs.isEmpty { beginJob() }
        }
    }

    // MARK: Restarts

    /// Reads the state as the start of a process does.
    func open() throws {
        if simulation.chance.oneIn(4), let latches = files.writeUnknownLatch() {
            if (try? SealedAttemptStore(files: files, thread: thread)) != nil {
                simulation.violated("rule 3: the program starts with a latch that it does not understand")
            }
            files.restoreLatches(latches)
        }
        attempts = try SealedAttemptStore(files: files, thread: thread)
    }

    func load() -> AttemptRecord {
        let record = attempts.load()
        // Anything not written is unknown to the next process, and a latch opened without writing is closed again.
        let marks = record.latches.entries.map { (Mark(challenge: $0.key.challenge, digest: $0.digest), $0.latch) }
        noted = [:]
        accepted = []
        closed = Dictionary(marks.map { ($0, (latch: $1, step: closed[$0]?.step ?? simulation.steps)) }) { $1 }
        return record
    }

    // MARK: Attempts

    func store(
        _ changes: [AttemptChange], of record: AttemptRecord, done: @escaping @Sendable (AttemptRecord?) -> Void
    ) {
        for change in changes { note(change) }
        // The worst moment is the one at which something is known and not written.
        if !changes.isEmpty { simulation.mayBeKilled() }
        let writer = process
        pending += 1
        enqueue { [self] in
            pending -= 1
            guard writer == process else { return done(nil) }
            let kept = write(changes, of: record)
            isBehind = kept == nil
            // Only failed writes are repeated.
            if !isBehind { noted = [:] }
            if let kept { learn(kept) }
            done(kept)
        }
    }

    private func write(_ changes: [AttemptChange], of record: AttemptRecord) -> AttemptRecord? {
        let result = Promise<AttemptRecord?>()
        attempts.store(changes, of: record) { result.fulfill($0) }
        guard let kept = result.wait() else { return nil }
        let isClosing = changes.contains { if case .close = $0 { true } else { false } }
        let digests = isClosing ? Set(latchesOnDisk.map(\.digest)) : []
        for case .close(let key, let digest, let latch) in changes {
            let mark = Mark(challenge: key.challenge, digest: digest)
            if !digests.contains(digest), closed[mark]?.latch == latch {
                simulation.violated("rule 3: a latch of \(key.challenge) is not on disk after its write")
            }
            // One that is not there was opened by the same write.
            written.insert(mark)
        }
        checkOpened(by: changes, kept)
        return kept
    }

    /// An operator's command opens every latch closed before it, however late it is written.
    private func checkOpened(by changes: [AttemptChange], _ kept: AttemptRecord) {
        for (mark, times) in elsewhere {
            let ends = changes.compactMap { change -> Int64? in
                guard case .unlatch(let challenge, let end) = change, challenge == nil || challenge == mark.challenge
                else { return nil }
                return end
            }
            guard let end = ends.max(), let last = times.max() else { continue }
            guard last > end else {
                elsewhere[mark] = nil
                continue
            }
            if !kept.latches.entries.contains(where: { $0.digest == mark.digest && $0.latch.closedAt >= last }) {
                simulation.violated("rule 3: a latch of \(mark.challenge) is opened that another process closed later")
            }
        }
    }

    private var latchesOnDisk: [LatchTable.Entry] {
        LatchTable(parsing: Array(files.text(of: "latches").utf8))?.entries ?? []
    }

    /// Notes the latches that the daemon learns from the directory: another process has closed them.
    private func learn(_ record: AttemptRecord) {
        for entry in record.latches.entries {
            let mark = Mark(challenge: entry.key.challenge, digest: entry.digest)
            guard elsewhere[mark]?.contains(entry.latch.closedAt) == true else { continue }
            elsewhere[mark] = nil
            // It may have been opened while this was read.
            let opening = openings[entry.key.challenge, default: .min]
            if entry.latch.closedAt == opening { opened[mark] = .max }
            guard entry.latch.closedAt > opening else { continue }
            if let known = closed[mark], known.latch.closedAt >= entry.latch.closedAt { continue }
            closed[mark] = (entry.latch, simulation.steps)
            written.insert(mark)
        }
    }

    /// Lets another process of the machine, with the same directory, close the latch of a value that was refused.
    func closeElsewhere(_ key: LatchKey, _ digest: [UInt8]) {
        guard let store = try? SealedAttemptStore(files: files, thread: thread) else { return }
        let latch = Latch(reason: .rejected, closedAt: simulation.now)
        let result = Promise<AttemptRecord?>()
        store.store([.close(key, digest: digest, latch)], of: store.load()) { result.fulfill($0) }
        if result.wait() == nil {
            // A write may fail after the file is there, and an earlier latch may be there in any case.
            guard latchesOnDisk.contains(where: { $0.digest == digest && $0.latch == latch }) else { return }
        }
        simulation.tell("another process closes a latch of \(key.challenge)")
        elsewhere[Mark(challenge: key.challenge, digest: digest), default: []].insert(latch.closedAt)
    }

    private func note(_ change: AttemptChange) {
        switch change {
        case .close(let key, let digest, let latch):
            let mark = Mark(challenge: key.challenge, digest: digest)
            guard noted[mark, default: []].insert(latch.closedAt).inserted else { return }
            // A write that failed is made again with the next one.
            if let known = closed[mark], known.latch == latch { return }
            simulation.tell("latch of \(key.challenge) closes: \(latch)")
            // It may have waited for an earlier write, and was opened meanwhile.
            let opening = openings[key.challenge, default: .min]
            if latch.closedAt == opening {
                opened[mark] = .max
                _ = simulation.logins.checkForgotten(key.challenge)
            }
            guard latch.closedAt > opening else { return }
            closed[mark] = (latch, simulation.steps)
            accepted.remove(mark)
            simulation.rules.latchClosed(key, digest, latch)
        // Failed writes are repeated, and operators' commands are noted at once.
        case .unlatch(let challenge?, let end):
            simulation.tell("the latches of \(challenge) open on disk")
            if !simulation.weather.hasDiskFaults { open(challenge, until: end) }
        case .unlatch(nil, _): break
        case .accept(let key, let digest, _):
            accepted.insert(Mark(challenge: key.challenge, digest: digest))
            elsewhere[Mark(challenge: key.challenge, digest: digest)] = nil
        case .withdraw(let key, let digest): accepted.remove(Mark(challenge: key.challenge, digest: digest))
        case .count, .renew, .use: break
        }
    }

    /// Notes that an operator has opened the latches of a challenge.
    func unlatched(_ challenge: String) {
        openings[challenge] = simulation.now
        open(challenge, until: simulation.now)
    }

    private func open(_ challenge: String, until end: Int64) {
        for (mark, known) in closed where mark.challenge == challenge && known.latch.closedAt <= end {
            closed[mark] = nil
            opened[mark] = simulation.steps
        }
    }

    /// Returns true if a latch was closed for the value with that digest before `step`, and since `first`, and still is.
    func isClosed(_ challenge: String, _ digest: [UInt8], since first: Int, before step: Int) -> Bool {
        guard let (latch, closing) = closed[Mark(challenge: challenge, digest: digest)], first <= closing,
            closing < step
        else { return false }
        return latch.opensAt.map { $0 > simulation.now } ?? true
    }

    /// Returns true if the daemon knows that the server accepts the right value of an account.
    func isAccepted(_ account: Account) -> Bool {
        guard account.isRight, let credential = simulation.credential(named: account.name) else { return false }
        return accepted.contains(Mark(challenge: account.name, digest: digest(of: credential)))
    }

    /// Returns true if a latch is closed for the value with that digest, or was at some time since `step`.
    func wasClosed(_ challenge: String, _ digest: [UInt8], since step: Int) -> Bool {
        let mark = Mark(challenge: challenge, digest: digest)
        return closed[mark] != nil || opened[mark, default: -1] >= step
    }

    /// Returns true if a latch of a challenge with that account was closed at `time` or later (ms since 1970).
    func wasLatched(_ account: Account, since time: Int64) -> Bool {
        func isIts(_ challenge: String) -> Bool { simulation.account(named: challenge) === account }
        return openings.contains { isIts($0.key) && $0.value >= time }
            // A node learns later that an operator has opened a latch on another.
            || opened.contains { isIts($0.key.challenge) && simulation.time(of: $0.value) >= time }
            || closed.contains { isIts($0.key.challenge) && ($0.value.latch.opensAt ?? .max) >= time }
    }

    /// Returns true if a latch of a challenge with that account was closed in the instant in which an operator opened it.
    func closedAtOpening(_ account: Account) -> Bool {
        opened.contains { $0.value == .max && simulation.account(named: $0.key.challenge) === account }
    }

    /// Returns true if a latch for the value with that digest was ever on disk.
    func wasWritten(_ challenge: String, _ digest: [UInt8]) -> Bool {
        written.contains(Mark(challenge: challenge, digest: digest))
    }

    /// Returns true if the step of a one-time password that ends at `end` is on disk as used.
    func hasUsed(stepEnding end: Int64) -> Bool { files.text(of: "totp-steps").contains("\(end)") }

    func digest(of credential: Credential) -> [UInt8] { attempts.digest(of: credential) }

    // MARK: State

    /// Returns true if a value with that text is stored.
    func holds(_ text: String) -> Bool { files.hold(Base64Text.encode(text)) }

    private func work() async {
        await withCheckedContinuation { done in enqueue { done.resume() } }
    }

    func load(_ name: String) async throws(StateError) -> Secret? {
        await work()
        return try files.load(name)
    }

    func save(_ value: Secret, as name: String) async throws(StateError) {
        let writer = process
        await work()
        guard writer == process else { throw StateError(reason: "simulated") }
        try files.save(value, as: name)
    }

    func remove(_ name: String) async throws(StateError) {
        await work()
        try files.remove(name)
    }
}
