// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import CLinux

/// Events of interest at a descriptor.
public struct Interest: OptionSet, Sendable, Hashable {
    /// Bits of epoll(7).
    public let rawValue: UInt32

    /// Creates the interest in these bits of epoll(7).
    public init(rawValue: UInt32) {
        self.rawValue = rawValue
    }

    /// Bytes to read, or the end of the peer's side.
    public static let read = Interest(rawValue: EPOLLIN.rawValue)
    /// Room to write.
    public static let write = Interest(rawValue: EPOLLOUT.rawValue)
    /// End of the peer's side, reported even while nothing is read, at every turn until the interest is dropped.
    public static let peerClosed = Interest(rawValue: EPOLLRDHUP.rawValue)
}

/// Events that happened at a descriptor.
public struct Readiness: OptionSet, Sendable, Hashable {
    /// Bits of epoll(7).
    public let rawValue: UInt32

    /// Creates readiness from these bits of epoll(7).
    public init(rawValue: UInt32) {
        self.rawValue = rawValue
    }

    /// Reading will not block: bytes, or the end.
    public static let readable = Readiness(rawValue: EPOLLIN.rawValue)
    /// Writing will not block.
    public static let writable = Readiness(rawValue: EPOLLOUT.rawValue)
    /// The peer has closed its side (only with `Interest.peerClosed`).
    public static let peerClosed = Readiness(rawValue: EPOLLRDHUP.rawValue)
    /// Both sides are closed; reported with any interest.
    public static let hangUp = Readiness(rawValue: EPOLLHUP.rawValue)
    /// The descriptor has failed; reported with any interest.
    public static let error = Readiness(rawValue: EPOLLERR.rawValue)
    /// The kernel refused to watch the descriptor; the handler must close it, or watch it again later.
    ///
    /// Reported together with `error`, one turn late. A bit that epoll(7) does not use.
    public static let refused = Readiness(rawValue: 1 << 24)
}

// Implemented in this module, because the generic code of `OptionSet` is not specialized across modules and was visible
// in the profile of a transfer.
extension Readiness {
    /// True if the descriptor is readable.
    public var isReadable: Bool { rawValue & EPOLLIN.rawValue != 0 }
    /// True if the descriptor is writable.
    public var isWritable: Bool { rawValue & EPOLLOUT.rawValue != 0 }
    /// True if the descriptor has failed or both sides are closed.
    public var isBroken: Bool { rawValue & (EPOLLERR.rawValue | EPOLLHUP.rawValue) != 0 }
}

/// Receiver of events at watched descriptors, on the loop's thread.
public protocol ReadinessHandler: AnyObject {
    /// Handles events at `fd`, which are repeated every turn while they last (level-triggered).
    func ready(_ fd: Int32, _ events: Readiness)
}

/// Receiver of scheduled timers, on the loop's thread.
public protocol TimerHandler: AnyObject {
    /// Handles the timer scheduled with `tag`, whose token is now spent.
    func timerFired(tag: UInt64)
}

/// Hook called before every wait on the loop's thread, to collect work that finished without an event.
public protocol WaitHook: AnyObject {
    /// Does pending work; `now` is the loop's `systemNow`.
    ///
    /// Called again before the wait as long as a hook reports work, so a hook without work must report none.
    func beforeWait(now: LoopInstant) -> WaitAdvice
}

/// Result of a hook, about the wait that follows.
public struct WaitAdvice: Sendable {
    /// True if the hook did something that may have created more work.
    public var didWork: Bool
    /// Latest time of the system's clock at which to call the hook again.
    public var deadline: LoopInstant

    /// Creates advice; without a deadline the wait is unlimited.
    public init(didWork: Bool, deadline: LoopInstant = .never) {
        self.didWork = didWork
        self.deadline = deadline
    }
}
