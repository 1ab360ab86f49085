// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import ChallengeHandling
internal import Curl
internal import HTTPWire

extension UpstreamPlan {
    /// Whether requests go over express lines: the upstream will speak HTTP/1.1.
    var goesExpress: Bool { !connections.mayBeHTTP2(to: base.origin) }
}

extension UpstreamClient {
    /// Whether requests for another protocol go up as such. Not where the settings want HTTP/2 and nothing else, which has
    /// no `Upgrade` (RFC 9113 section 8.2.2): there they are ordinary requests.
    package var takesUpgrades: Bool { plan.connections.version != .http2 }

    /// A transfer on a line of its own, which rests in `pool`. One that asks for another protocol has a connection of its own, too,
    /// which goes with it.
    func makeLine(
        for owner: any TransferOwner, in pool: TransferPool, isUpgrade: Bool = false
    ) throws(CurlError) -> Transfer {
        let transfer = try makeTransfer(by: pool.driver, mayBeHTTP2: false)
        // ALPN must not choose HTTP/2, where nothing can be upgraded.
        try transfer.easy.set(.httpVersion, Curl.HTTPVersion.http11.rawValue)
        try transfer.easy.connectOnly()
        // The line writes them itself; libcurl is not to hold on to them for as long as the connection lasts.
        try transfer.easy.set(.httpHeader, nil)
        let proxy = plan.connections.proxy ?? ""
        let connection = UpstreamConnection(
            easy: transfer.easy, driver: try runtime.connections(), loop: runtime.loop, idleDelay: idleDelay,
            isSecure: plan.base.origin.scheme == .https || proxy.lowercased().hasPrefix("https"))
        transfer.line = ExpressLine(transfer: transfer, connection: connection, rest: pool.rest)
        transfer.isUpgrade = isUpgrade
        transfer.owner = owner
        return transfer
    }

    /// Starts `transfer`, by libcurl or by its line.
    func start(
        _ transfer: Transfer, request: ExchangeRequest, head: FieldSink, at route: RouteSessions
    ) throws(CurlError) {
        if let line = transfer.line {
            try line.start(request, head: head)
        } else if let sharedStart = try pool(of: route.connections).sharedStart, !transfer.shape.isHTTP1 {
            try sharedStart.start(transfer)
        } else {
            try transfer.driver.start(transfer)
        }
    }

    /// The upstream is no longer in the configuration: its lines go, those in use after their requests.
    package func retire() {
        commonPool.rest.close()
        retireOthers()
    }
}
