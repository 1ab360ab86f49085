// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import ChallengeHandling
internal import EventLoop
internal import HTTPWire

/// One upstream on one worker: its streams, routes, counters, and clients per caller.
package final class UpstreamClient {
    /// The upstream's configuration.
    package let plan: UpstreamPlan
    /// The upstream's authority, for `Host`.
    package let authority: [UInt8]
    /// True if callers get separate clients. Like `forwarding`, copied from the plan, which is large to copy.
    package let dependsOnCaller: Bool
    /// The changes to requests and responses.
    package let forwarding: ForwardingPolicy
    /// `timeouts.response` for the loop.
    let responseDelay: LoopDelay
    /// `timeouts.idle` for the loop.
    let idleDelay: LoopDelay
    let runtime: ClientRuntime
    /// The counters of its exchanges on this worker.
    package let meter: UpstreamMeter
    /// The logins at each of its routes.
    let routes: RouteTable
    /// The examiner of its answers.
    let examiner: Examiner
    /// The record of its 100 responses.
    var expectations = ExpectContinueSupport()
    let streams: any StreamSource
    /// The clients for callers with separate credentials, by number.
    private var identities: [Int: UpstreamClient] = [:]

    /// Creates the client of `plan` on the worker of `runtime`.
    ///
    /// `former`: the previous client, whose connections are taken over if origin and settings are unchanged, and closed
    /// otherwise.
    package convenience init(plan: UpstreamPlan, runtime: ClientRuntime, after former: UpstreamClient? = nil) {
        if let former, former.plan.base.origin == plan.base.origin, former.plan.connections == plan.connections {
            former.retireOthers()
            self.init(plan: plan, runtime: runtime, streams: former.streams.successor(for: plan))
        } else {
            former?.retire()
            self.init(plan: plan, runtime: runtime, streams: runtime.transport.streams(for: plan))
        }
    }

    /// Creates a client whose requests are carried by `streams`, regardless of the plan's connection settings.
    init(plan: UpstreamPlan, runtime: ClientRuntime, streams: any StreamSource) {
        self.plan = plan
        authority = Array(plan.base.origin.authority.utf8)
        dependsOnCaller = plan.dependsOnCaller
        forwarding = plan.forwarding
        responseDelay = LoopDelay(plan.timeouts.response)
        idleDelay = LoopDelay(plan.timeouts.idle)
        self.runtime = runtime
        self.streams = streams
        meter = runtime.meters.meter(of: plan.name)
        routes = RouteTable(plan: plan)
        examiner = Examiner(gate: runtime.gate, routes: routes, wallClock: runtime.services.wallClock)
        runtime.enlist(self)
    }

    deinit { runtime.delist(self) }

    // MARK: Callers

    /// Returns the client for that caller; `nil` means an unknown one.
    package func client(for caller: CallerIdentity?) -> UpstreamClient {
        guard let number = plan.index(of: caller) else { return self }
        if let known = identities[number] { return known }
        let made = UpstreamClient(plan: plan.identities[number], runtime: runtime)
        identities[number] = made
        return made
    }

    /// Closes the connections bound to a user.
    func retireOthers() {
        streams.closeBound()
        for client in identities.values { client.retire() }
    }

    /// Closes all connections after the upstream's removal, busy ones after their requests.
    package func retire() {
        streams.close()
        for client in identities.values { client.retire() }
    }

    /// True if upgrade requests are forwarded as such. If HTTP/2 is the only version, they are ordinary requests,
    /// because HTTP/2 has no `Upgrade` (RFC 9113 §8.2.2).
    package var takesUpgrades: Bool { plan.connections.version != .http2 }
}

/// An upstream's record of answering `Expect: 100-continue` (RFC 9110 §10.1.1).
///
/// After a wait without an answer the upstream is not asked for a while, so that the wait is rare.
struct ExpectContinueSupport {
    /// The wait in milliseconds after which 100 counts as missing; a little less than libcurl waits.
    static let waitMilliseconds = 900
    /// The time without expectations after an expired wait.
    private static let ignoredTime = Duration.seconds(600)

    private var ignoredUntil = LoopInstant(nanoseconds: 0)

    /// Returns true if a body too long for a replay should wait for 100. A challenge then comes first.
    func isHonored(at now: LoopInstant) -> Bool { now >= ignoredUntil }

    /// Records the outcome of an expectation.
    mutating func record(isHonored: Bool, at now: LoopInstant) {
        ignoredUntil = isHonored ? now : now + Self.ignoredTime
    }
}
