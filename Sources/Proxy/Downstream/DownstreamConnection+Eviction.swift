// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import EventLoop
internal import Glibc
internal import HTTPWire

/// A worker's connections that may be closed for other callers.
struct Vacancies {
    /// Searches in one turn of the loop, each through all of them: a storm of callers must not take all of its time.
    private static let mostSearches = 8

    /// Those to be closed first at the beginning.
    var descriptors: [Int32] = []
    /// When to look for them anew.
    private(set) var until = LoopInstant(nanoseconds: 0)
    private var searches = 0
    private var turn = LoopInstant(nanoseconds: 0)

    init() {}

    init(of connections: some Collection<DownstreamConnection>, at now: LoopInstant, until: LoopInstant) {
        self.until = until
        let found = connections.compactMap { connection in
            connection.vacancy(at: now).map { (descriptor: connection.descriptor, vacancy: $0) }
        }
        descriptors = found.sorted { $0.vacancy > $1.vacancy }.map(\.descriptor)
    }

    /// Returns whether another search is in order in the turn that began at `now`.
    mutating func maySearch(at now: LoopInstant) -> Bool {
        if turn != now { (turn, searches) = (now, 0) }
        searches += 1
        return searches <= Self.mostSearches
    }
}

/// Reasons for which a connection may be closed for another caller, and for how long they have been there. The greater one
/// is closed first.
struct Vacancy: Comparable {
    enum Kind: Int {
        /// A request was answered, and none has begun since.
        case idle
        /// Nothing has come on it.
        case silent
        /// It is over but for what its caller may still send.
        case lingering
    }

    var kind: Kind
    /// In nanoseconds.
    var age: UInt64

    static func < (left: Vacancy, right: Vacancy) -> Bool {
        (left.kind.rawValue, left.age) < (right.kind.rawValue, right.age)
    }
}

extension DownstreamConnection {
    /// How long what still comes is read over after our last reply.
    static let lingering = Duration.seconds(2)

    /// The reason to close it for another caller, if there is one. Found from the time limit that is set for it, so that
    /// requests need not note when they end.
    func vacancy(at now: LoopInstant) -> Vacancy? {
        switch phase {
        case .lingering:
            return Vacancy(kind: .lingering, age: age(of: LoopDelay(Self.lingering), at: now))
        case .head where parser.isIdle && input.isEmpty && output.isEmpty && agent == nil && !hasEnded:
            let delay =
                !hasServed
                ? worker.silentDelay
                : LoopDelay(isQuiet ? worker.limits.idleTime : min(worker.limits.quietTime, worker.limits.idleTime))
            let vacancy = Vacancy(kind: hasServed ? .idle : .silent, age: age(of: delay, at: now))
            return vacancy.age >= LoopDelay(worker.limits.evictionAge).nanoseconds ? vacancy : nil
        default:
            return nil
        }
    }

    /// Closes it for another caller, unless it is in use again. Whether it is closed.
    func closeForAnother() -> Bool {
        guard vacancy(at: worker.loop.now) != nil else { return false }
        var byte: UInt8 = 0
        // A request lies in the socket already.
        if phase == .head, unsafe recv(descriptor, &byte, 1, Int32(MSG_PEEK)) > 0 { return false }
        close()
        return true
    }

    /// The time since the limit was set that ends `delay` after that.
    private func age(of delay: LoopDelay, at now: LoopInstant) -> UInt64 {
        guard timer.deadline != .never else { return 0 }
        let left = timer.deadline.nanoseconds(since: now)
        return delay.nanoseconds > left ? delay.nanoseconds - left : 0
    }
}
