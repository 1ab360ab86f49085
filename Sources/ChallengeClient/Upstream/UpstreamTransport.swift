// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import ChallengeHandling
internal import EventLoop

/// The transport of one worker's requests to upstreams and login servers.
protocol UpstreamTransport: AnyObject {
    func streams(for plan: UpstreamPlan) -> any StreamSource
    /// Sends `request` of the login named `login`, and calls `finish` once, on the loop's thread, not from within.
    func send(
        _ request: SideRequest, of login: String, plan: UpstreamPlan,
        finish: @escaping (Result<SideResponse, SideRequestError>) -> Void)
}

/// The choice of a transport for each worker.
package struct TransportFactory: Sendable {
    let make: @Sendable (ClientRuntime) -> any UpstreamTransport

    init(_ make: @escaping @Sendable (ClientRuntime) -> any UpstreamTransport) { self.make = make }

    /// The transport over libcurl.
    package static let libcurl = TransportFactory { CurlTransport($0) }
}

/// The transport over libcurl.
final class CurlTransport: UpstreamTransport {
    private unowned let runtime: ClientRuntime

    /// Creates the transport of `runtime`, which outlives it.
    init(_ runtime: ClientRuntime) { self.runtime = runtime }

    func streams(for plan: UpstreamPlan) -> any StreamSource { UpstreamStreams(plan: plan, runtime: runtime) }

    func send(
        _ request: SideRequest, of login: String, plan: UpstreamPlan,
        finish: @escaping (Result<SideResponse, SideRequestError>) -> Void
    ) {
        SideTransfer.start(request, of: login, plan: plan, on: runtime, finish: finish)
    }
}
