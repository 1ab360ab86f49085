// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import ChallengeHandling
internal import Curl

extension SideRequestError {
    init(_ error: CurlError, origin: Origin, text: String) {
        let text = text.isEmpty ? error.description : text
        switch TransferFault(error) {
        case .protocolError(let reason): self.init(.badAnswer, reason: "\(origin): \(reason) (\(text))")
        case .timedOut: self.init(.timedOut, reason: "\(origin) did not answer in time (\(text))")
        case .tls: self.init(.tls, reason: "\(origin): the TLS handshake failed (\(text))")
        case .unreachable(let reason): self.init(.unreachable, reason: "\(origin): \(reason) (\(text))")
        }
    }
}
