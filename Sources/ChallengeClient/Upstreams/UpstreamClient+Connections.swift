// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import ChallengeHandling
internal import Curl
internal import Secrets

extension UpstreamClient {
    /// A transfer whose connection libcurl authenticates by NTLM (MS-NTHT), which HTTP/2 does not have. Never used again: no other
    /// request may get hold of its name and password, while libcurl keeps the connection for the next one that has them.
    func transfer(
        for owner: any TransferOwner, by driver: CurlDriver, authenticatingBy credential: ConnectionCredential
    ) throws(CurlError) -> Transfer {
        let transfer = try makeTransfer(by: driver, mayBeHTTP2: false)
        try transfer.authenticateConnection(by: credential)
        transfer.owner = owner
        return transfer
    }
}

extension Transfer {
    /// Has libcurl authenticate the connection by NTLM.
    func authenticateConnection(by credential: ConnectionCredential) throws(CurlError) {
        authenticatesConnection = true
        try easy.set(.httpVersion, Curl.HTTPVersion.http11.rawValue)
        try easy.set(.httpAuth, EasyHandle.ntlm)
        try credential.username.withBytes { (bytes) throws(CurlError) in try easy.set(.userName, bytes: bytes) }
        try credential.password.withBytes { (bytes) throws(CurlError) in try easy.set(.password, bytes: bytes) }
    }
}
