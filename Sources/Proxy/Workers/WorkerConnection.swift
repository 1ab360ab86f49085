// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import ChallengeClient
internal import EventLoop
internal import Glibc

/// A caller's connection as its worker sees it, independent of the protocol.
protocol WorkerConnection: AnyObject {
    /// The caller, with the socket.
    var caller: AcceptedCaller { get }
    /// True if the connection is in the worker's queue for this turn.
    var isEnqueued: Bool { get set }
    /// Processes input and writes output; called once per turn for enqueued connections.
    func turn()
    /// Closes the connection for a drain, if no request is under way.
    func closeIfIdle()
    /// Ends the drain: refuses a request without a response so far, or closes the connection.
    func turnAway()
    /// Closes the connection at once.
    func close()
    /// Returns the reason to close the connection for another caller, if there is one.
    func vacancy(at now: LoopInstant) -> Vacancy?
    /// Closes the connection for another caller, unless it is in use again. Returns true if it is closed.
    func closeForAnother() -> Bool
}

/// An accepted connection: its socket, listener, permit and user. An object, so that a waiting caller is distinct from the next
/// one with the same descriptor.
final class AcceptedCaller {
    let descriptor: Int32
    let acceptor: Acceptor
    let permit: ConnectionPermit
    /// The caller's uid, once it was looked up and the kernel reported it.
    private var knownUser: UInt32?
    /// The caller whose token the present request has.
    var named: CallerIdentity?

    init(_ descriptor: Int32, _ acceptor: Acceptor, _ permit: ConnectionPermit, user: UInt32?) {
        (self.descriptor, self.acceptor, self.permit, knownUser) = (descriptor, acceptor, permit, user)
    }

    /// The plan of the listener, as of the last reload.
    var listener: ListenerPlan { acceptor.plan }

    /// The caller's uid, if the kernel reports it and the listener or one of its routes has `users`.
    var user: UInt32? { listener.asksForUser ? callerUser : nil }

    /// The caller's uid, if the kernel reports it; looked up once.
    var callerUser: UInt32? {
        if knownUser == nil { knownUser = acceptor.user(of: descriptor) }
        return knownUser
    }

    /// The caller's identity: by the request's token if the listener has tokens, else by the kernel.
    var identity: CallerIdentity? { listener.tokens == nil ? callerUser.map { .user($0) } : named }

    /// True if a caller without a known uid is certainly not a user known here.
    var isStranger: Bool { acceptor.isStranger(descriptor) }

    /// True for a caller over a Unix socket.
    var isUnixSocket: Bool { acceptor.isUnix }
}

/// A worker's connections that may be closed for other callers.
struct Vacancies {
    /// The number of searches in one turn of the loop. Each visits all connections, and a storm of callers must not take all of
    /// the time.
    private static let mostSearches = 8

    /// Descriptors, with those to be closed first at the beginning.
    var descriptors: [Int32] = []
    /// The time of the next collection.
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

    /// Counts a search and returns true if it is allowed in the turn that began at `now`.
    mutating func maySearch(at now: LoopInstant) -> Bool {
        if turn != now { (turn, searches) = (now, 0) }
        searches += 1
        return searches <= Self.mostSearches
    }
}

/// Reason for which a connection may be closed, and its age. The greatest is closed first.
struct Vacancy: Comparable {
    enum Kind: Int {
        /// A request was answered, and no other has begun since.
        case idle
        /// The caller has sent nothing.
        case silent
        /// The response is complete, and the caller may still send something.
        case lingering
    }

    var kind: Kind
    /// The age, in nanoseconds.
    var age: UInt64

    /// Makes a vacancy from a timeout of `delay` that ends at `deadline`. Requests need not record when they end.
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
