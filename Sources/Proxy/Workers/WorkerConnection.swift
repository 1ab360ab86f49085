// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import EventLoop
internal import Glibc

/// A caller's connection as its worker sees it, whatever is spoken on it.
protocol WorkerConnection: AnyObject {
    /// The caller, with the socket.
    var caller: AcceptedCaller { get }
    /// True if the worker has it on its list for this turn.
    var isNoted: Bool { get set }
    /// Goes on with the input and writes the output; called once per turn for connections with something to do.
    func turn()
    /// A drain closes it if no request is under way.
    func closeIfIdle()
    /// The time of the drain is over: refuses the request that has no response yet, and closes all others.
    func turnAway()
    /// Closes at once.
    func close()
    /// The reason to close it for another caller, if there is one.
    func vacancy(at now: LoopInstant) -> Vacancy?
    /// Closes it for another caller, unless it is in use again. Returns whether it is closed.
    func closeForAnother() -> Bool
}

/// A connection that has been accepted: its socket, its listener, its place, its user. An object, so that one that waits for a
/// place is told from the next one of the same descriptor.
final class AcceptedCaller {
    let descriptor: Int32
    let acceptor: Acceptor
    let place: CallerPlace
    /// The caller's uid, once it was asked for and the kernel knew.
    private var knownUser: UInt32?

    init(_ descriptor: Int32, _ acceptor: Acceptor, _ place: CallerPlace, user: UInt32?) {
        (self.descriptor, self.acceptor, self.place, knownUser) = (descriptor, acceptor, place, user)
    }

    /// The plan of its listener, as of the last reload.
    var listener: ListenerPlan { acceptor.plan }

    /// The caller's uid, where the kernel tells it and the listener or one of its routes is for certain users.
    var user: UInt32? { listener.asksForUser ? callerUser : nil }

    /// The caller's uid, where the kernel tells it; asked once.
    var callerUser: UInt32? {
        if knownUser == nil { knownUser = acceptor.user(of: descriptor) }
        return knownUser
    }

    /// True if a caller whose uid is not known is for certain none of the users known here.
    var isStranger: Bool { acceptor.isStranger(descriptor) }

    /// True if the caller came over a Unix socket.
    var isUnixSocket: Bool { acceptor.isUnix }
}

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

    init(of connections: some Collection<any WorkerConnection>, at now: LoopInstant, until: LoopInstant) {
        self.until = until
        let found = connections.compactMap { connection in
            connection.vacancy(at: now).map { (descriptor: connection.caller.descriptor, vacancy: $0) }
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

    /// The vacancy of a connection whose time limit of `delay` ends at `deadline`: so requests need not note when they end.
    init(_ kind: Kind, limitedBy delay: LoopDelay, until deadline: LoopInstant, at now: LoopInstant) {
        self.kind = kind
        age = 0
        guard deadline != .never else { return }
        let left = deadline.nanoseconds(since: now)
        if delay.nanoseconds > left { age = delay.nanoseconds - left }
    }

    static func < (left: Vacancy, right: Vacancy) -> Bool {
        (left.kind.rawValue, left.age) < (right.kind.rawValue, right.age)
    }
}
