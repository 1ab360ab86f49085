// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import ChallengeClient
internal import EventLoop

/// The measurements of one exchange on its way: numbers only, kept in the connection.
struct ExchangeTally {
    /// True if an exchange is being measured.
    private(set) var isOpen = false
    /// The turn in which its head was read.
    private var begun = LoopInstant(nanoseconds: 0)
    /// How long it took from there until its transfer was set up, in nanoseconds.
    private var ahead: UInt64 = 0
    /// The status of the response that the caller gets; 0 where it has got none.
    var status = 0
    /// True if the response is whole.
    var isWhole = false
    /// True if the upstream broke it off.
    var isBroken = false
    /// True if it is a reply of our own.
    var isLocal = false

    /// An exchange begins, in the turn that began at `now`.
    mutating func begin(at now: LoopInstant) {
        self = ExchangeTally()
        isOpen = true
        begun = now
    }

    /// The upstream has the request, or its login is waited for.
    mutating func handedOver(by loop: EventLoop) {
        guard isOpen else { return }
        ahead = loop.readNow().nanoseconds(since: begun)
    }

    /// It is over, in the present turn of `loop`: counts it.
    mutating func end(in loop: EventLoop, to meter: UpstreamMeter) {
        guard isOpen else { return }
        isOpen = false
        let end: UpstreamMeter.End =
            if isLocal { .localReply } else if isBroken { .broken(status: status) } else if isWhole {
                .response(status: status)
            } else { .callerLost }
        let clock = loop.readNow()
        let whole = clock.nanoseconds(since: begun)
        meter.ended(end, whole: whole, own: min(whole, ahead &+ clock.nanoseconds(since: loop.now)))
    }
}
