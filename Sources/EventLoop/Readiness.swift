// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import CLinux

/// What an owner wants to be told of a descriptor.
public struct Interest: OptionSet, Sendable, Hashable {
    /// The bits of epoll(7).
    public let rawValue: UInt32

    /// Interest in these bits of epoll(7).
    public init(rawValue: UInt32) {
        self.rawValue = rawValue
    }

    /// There is something to read, or the peer has ended its side.
    public static let read = Interest(rawValue: EPOLLIN.rawValue)
    /// There is room to write.
    public static let write = Interest(rawValue: EPOLLOUT.rawValue)
    /// The peer has ended its side of the connection, told even while nothing is read. It is told every turn until the
    /// interest is dropped.
    public static let peerClosed = Interest(rawValue: EPOLLRDHUP.rawValue)
}

/// What happened at a descriptor.
public struct Readiness: OptionSet, Sendable, Hashable {
    /// The bits of epoll(7).
    public let rawValue: UInt32

    /// These bits of epoll(7).
    public init(rawValue: UInt32) {
        self.rawValue = rawValue
    }

    /// Reading will not block: bytes, or the end.
    public static let readable = Readiness(rawValue: EPOLLIN.rawValue)
    /// Writing will not block.
    public static let writable = Readiness(rawValue: EPOLLOUT.rawValue)
    /// The peer has ended its side (only with `Interest.peerClosed`).
    public static let peerClosed = Readiness(rawValue: EPOLLRDHUP.rawValue)
    /// Both sides have ended; told whatever the interest, as long as there is any.
    public static let hangUp = Readiness(rawValue: EPOLLHUP.rawValue)
    /// The descriptor has failed; told whatever the interest, as long as there is any. It also tells, one turn late,
    /// that the kernel would not watch the descriptor: whoever is told closes it.
    public static let error = Readiness(rawValue: EPOLLERR.rawValue)
}

// Questions answered in this module: those of `OptionSet` are generic code that is not specialised across modules, and
// showed in the profile of a transfer.
extension Readiness {
    /// True if it is `readable`.
    public var isReadable: Bool { rawValue & EPOLLIN.rawValue != 0 }
    /// True if it is `writable`.
    public var isWritable: Bool { rawValue & EPOLLOUT.rawValue != 0 }
    /// True if it is `error` or `hangUp`.
    public var isBroken: Bool { rawValue & (EPOLLERR.rawValue | EPOLLHUP.rawValue) != 0 }
}

/// Told of events at the descriptors that it watches, on the loop's thread.
public protocol ReadinessHandler: AnyObject {
    /// Something happened at `fd`. It is told again at the next turn while it stays so (level-triggered).
    func ready(_ fd: Int32, _ events: Readiness)
}

/// Told of moments that it scheduled, on the loop's thread.
public protocol TimerHandler: AnyObject {
    /// The moment scheduled with `tag` has come; its token is spent.
    func timerFired(tag: UInt64)
}

/// Called before every wait, on the loop's thread: the place to collect what finished without an event.
public protocol WaitHook: AnyObject {
    /// Does what there is to do; `now` is the loop's `systemNow`. It is called again before the wait as long as a hook reports work,
    /// so it must report none once there is none.
    func beforeWait(now: LoopInstant) -> WaitAdvice
}

/// What a hook knows about the wait that follows.
public struct WaitAdvice: Sendable {
    /// True if anything was done that may have made more to do.
    public var didWork: Bool
    /// The moment of the system's clock at which to call the hook again at the latest.
    public var deadline: LoopInstant

    /// Advice; without a deadline the wait may last.
    public init(didWork: Bool, deadline: LoopInstant = .never) {
        self.didWork = didWork
        self.deadline = deadline
    }
}
