// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import ChallengeClient
internal import Curl
internal import HTTPWire

// From HTTP to another protocol.
extension DownstreamConnection {
    /// The protocols that `request` asks for, where they are asked for upstream, too. Then nothing behind it is read as a
    /// request: it may be the other protocol already, from a caller who does not wait for the 101, and what is that to one
    /// reader and a request to another is how requests are smuggled. So the connection ends with any other answer.
    func upgradeOffer(of request: RequestHead, to client: UpstreamClient) -> UpgradeOffer? {
        guard request.requestsUpgrade, client.takesUpgrades else { return nil }
        return head.withSpan { UpgradeOffer(request, in: $0) }
    }

    /// Writes the fields that ask for the switch, which are hop-by-hop and hence were left out before.
    func write(_ offer: UpgradeOffer, to fields: HeaderList) throws(CurlError) {
        var value = ByteQueue()
        head.withSpan { offer.write($0, to: &value) }
        try fields.append(name: "Connection", value: "Upgrade")
        try value.withSpan { (value) throws(CurlError) in try fields.append(name: "Upgrade", value: value) }
    }

    func exchangeSwitches(headOf transfer: Transfer, to connection: UpstreamConnection) throws(WireError) {
        guard let offer else { throw WireError(upstream: .switchInvalid) }
        response.held = exchange?.heldCookies ?? HeldCookies()
        try head.withSpan { (request) throws(WireError) in
            try transfer.head.withSpan { (bytes) throws(WireError) in
                try response.writeSwitch(
                    transfer.answer, in: bytes, to: offer, askedBy: request, to: &output, addresses: addressMap)
            }
        }
        tally.status = transfer.answer.status
        tally.isWhole = true
        accessNote?.status = transfer.answer.status
        beginTunnel(on: connection)
    }
}
