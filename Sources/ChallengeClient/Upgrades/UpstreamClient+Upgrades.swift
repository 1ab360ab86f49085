// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import ChallengeHandling
internal import Curl
internal import HTTPWire

extension UpstreamClient {
    /// Whether requests for another protocol go up as such. Not where the settings want HTTP/2 and nothing else, which has
    /// no `Upgrade` (RFC 9113 section 8.2.2): there they are ordinary requests.
    package var takesUpgrades: Bool { plan.connections.version != .http2 }

    /// A transfer that a handshake feeds. Never used again: its connection goes with it.
    func handshake(for owner: any TransferOwner) throws(CurlError) -> Transfer {
        let transfer = try makeTransfer(mayBeHTTP2: false)
        // ALPN must not choose HTTP/2, where nothing can be upgraded.
        try transfer.easy.set(.httpVersion, Curl.HTTPVersion.http11.rawValue)
        try transfer.easy.connectOnly()
        // The handshake writes them itself; libcurl is not to hold on to them for as long as the connection lasts.
        try transfer.easy.set(.httpHeader, nil)
        let proxy = plan.connections.proxy ?? ""
        let connection = UpstreamConnection(
            easy: transfer.easy, driver: try runtime.connections(), loop: runtime.loop, idleDelay: idleDelay,
            isSecure: plan.base.origin.scheme == .https || proxy.lowercased().hasPrefix("https"))
        transfer.handshake = Handshake(transfer: transfer, connection: connection)
        transfer.owner = owner
        return transfer
    }

    /// Starts `transfer`, by libcurl or by its handshake.
    func start(_ transfer: Transfer, request: ExchangeRequest, target: borrowing ByteQueue) throws(CurlError) {
        if let handshake = transfer.handshake {
            try handshake.start(request, target: target)
        } else if let sharedStart, !transfer.shape.isHTTP1 {
            try sharedStart.start(transfer)
        } else {
            try runtime.driver.start(transfer)
        }
    }
}
