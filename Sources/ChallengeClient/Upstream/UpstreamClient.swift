// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import ChallengeHandling
internal import EventLoop
internal import HTTPWire

/// One upstream as one worker sees it: the source of its streams, its routes and its habits.
package final class UpstreamClient {
    /// The upstream, as it is configured.
    package let plan: UpstreamPlan
    /// The upstream's authority, for `Host`.
    package let authority: [UInt8]
    /// True if callers get clients of their own; like `forwarding` apart from the plan, which is long to copy.
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
    /// The judge of its answers.
    let examiner: Examiner
    /// Its habit of saying 100.
    var expectations = ExpectationMemory()
    /// The source of its streams.
    let streams: any StreamSource
    /// That source, if its connections can be taken over.
    private let ownStreams: UpstreamStreams?
    /// Those for callers with an identity of their own, by its number.
    private var identities: [Int: UpstreamClient] = [:]

    /// The client of `plan` on the worker of `runtime`. `former`: the one before it, whose connections it takes over where they lead to
    /// the same; else they are closed.
    package convenience init(plan: UpstreamPlan, runtime: ClientRuntime, after former: UpstreamClient? = nil) {
        var taken: UpstreamStreams?
        if let former, former.plan.base.origin == plan.base.origin, former.plan.connections == plan.connections {
            taken = former.ownStreams
            former.retireOthers()
        } else {
            former?.retire()
        }
        let streams = UpstreamStreams(
            plan: plan, runtime: runtime, idleDelay: LoopDelay(plan.timeouts.idle), after: taken)
        self.init(plan: plan, runtime: runtime, streams: streams, own: streams)
    }

    /// A client whose requests are carried by `streams`, whatever `plan` says of connections.
    convenience init(plan: UpstreamPlan, runtime: ClientRuntime, streams: any StreamSource) {
        self.init(plan: plan, runtime: runtime, streams: streams, own: nil)
    }

    private init(plan: UpstreamPlan, runtime: ClientRuntime, streams: any StreamSource, own: UpstreamStreams?) {
        self.plan = plan
        authority = Array(plan.base.origin.authority.utf8)
        dependsOnCaller = plan.dependsOnCaller
        forwarding = plan.forwarding
        responseDelay = LoopDelay(plan.timeouts.response)
        idleDelay = LoopDelay(plan.timeouts.idle)
        self.runtime = runtime
        self.streams = streams
        ownStreams = own
        meter = runtime.meters.meter(of: plan.name)
        routes = RouteTable(plan: plan)
        examiner = Examiner(gate: runtime.gate, routes: routes, wallClock: runtime.services.wallClock)
        runtime.enlist(self)
    }

    deinit { runtime.delist(self) }

    // MARK: Callers

    /// The client for a caller of that uid; `nil`: a caller who is no user of this machine.
    package func client(for user: UInt32?) -> UpstreamClient {
        guard let number = plan.identity(of: user) else { return self }
        if let known = identities[number] { return known }
        let made = UpstreamClient(plan: plan.identities[number], runtime: runtime)
        identities[number] = made
        return made
    }

    /// The connections go that are bound to a user.
    func retireOthers() {
        streams.closeBound()
        for client in identities.values { client.retire() }
    }

    /// The upstream is no longer in the configuration: its connections go, those in use after their requests.
    package func retire() {
        streams.close()
        for client in identities.values { client.retire() }
    }

    /// True if requests for another protocol go up as such. Not where the settings want HTTP/2 and nothing else, which has
    /// no `Upgrade` (RFC 9113 §8.2.2): there they are ordinary requests.
    package var takesUpgrades: Bool { plan.connections.version != .http2 }
}
