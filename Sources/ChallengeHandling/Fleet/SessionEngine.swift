// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// The session engine, as a host reaches it. All is called, and calls back, on one thread, the loop's; nothing blocks.
///
/// A session is known to the engine by a name that is the same on all hosts whose configuration of it is the same.
package protocol SessionEngine: AnyObject {
    /// Whether it answers, as far as is known.
    var isThere: Bool { get }
    /// Told of whatever the engine tells unasked; set before `begin`.
    var listener: ((EngineNews) -> Void)? { get set }

    /// Connects, and goes on connecting whenever the connection is lost, after a pause that grows with chance.
    func begin()
    /// Closes the connection; what is under way is answered with `nil`.
    func end()
    /// Has the engine carry out `request` for the session of `name`. `answered` gets `nil` where no answer came in time or the
    /// engine is away: then nobody knows whether it was done.
    func ask(_ request: EngineRequest, for name: String, _ answered: @escaping (EngineReply?) -> Void)
    /// From now on also hears of that session. What was told before the engine knows of it is lost: whoever must not miss it asks.
    func follow(_ name: String)
    /// All latches, with the count of their changes.
    func latches(_ answered: @escaping ((count: UInt64, latches: [SharedLatch])?) -> Void)
    /// Closes latches that no login under a lease has closed; whether that was done.
    func close(_ latches: [SharedLatch], _ answered: @escaping (Bool) -> Void)
    /// Opens all latches of a challenge; how many there were.
    func open(challenge: String, _ answered: @escaping (Int?) -> Void)
}

/// What the engine tells unasked. Any of it may be lost, and come late: it only says where a look is worth its while.
package enum EngineNews: Sendable, Equatable {
    /// It answers again; what was told meanwhile is lost.
    case connected
    /// It does not answer any more, for that reason.
    case away(reason: String)
    /// Something has become of the session of that name: another host has won it, failed, or dropped it.
    case session(name: String, generation: UInt64)
    /// The shared latches have changed.
    case latches(count: UInt64)
}
