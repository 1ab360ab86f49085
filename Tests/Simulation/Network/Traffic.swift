// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// The requests of a process on their way to servers: they end with the process.
final class Traffic: @unchecked Sendable {
    private var links: [ObjectIdentifier: Link] = [:]
    private var sideRequests: [ObjectIdentifier: SimulatedSideRequest] = [:]
    /// Kept, since streams refer to their source.
    private var sources: [SimulatedStreams] = []

    /// True if no login sends anything.
    var isQuiet: Bool { sideRequests.isEmpty }

    func add(_ link: Link) {
        if links.count > 256 { links = links.filter { !$0.value.isOver } }
        links[ObjectIdentifier(link)] = link
    }

    func add(_ request: SimulatedSideRequest) { sideRequests[ObjectIdentifier(request)] = request }

    func remove(_ request: SimulatedSideRequest) { sideRequests[ObjectIdentifier(request)] = nil }

    func retain(_ source: SimulatedStreams) { sources.append(source) }

    /// Cuts everything off.
    func cut() {
        for link in links.values { link.cut() }
        for request in sideRequests.values { request.cut() }
    }

    /// Forgets everything.
    func clear() { (links, sources) = ([:], []) }
}
