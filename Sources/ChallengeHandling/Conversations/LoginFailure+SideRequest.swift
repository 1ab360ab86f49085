// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

extension LoginFailure {
    /// The end of a login whose request, named by `step`, brought no answer: nothing is known about the credential.
    init(_ error: SideRequestError, step: String, challenge: String) {
        let reason = error.told.isEmpty ? "" : ": \(error.told)"
        switch error.kind {
        case .guarded(let failure):
            self = failure
        case .timedOut:
            self.init(.timedOut, challenge: challenge, detail: "The server did not answer \(step) in time.")
        case .originNotAllowed:
            self.init(
                .failed, challenge: challenge,
                detail: "The address for \(step) is none that the configuration names, so nothing was sent.")
        case .tls:
            self.init(
                .upstreamTLS, challenge: challenge,
                detail: "The TLS handshake with the server for \(step) failed\(reason).")
        case .unreachable:
            self.init(
                .failed, challenge: challenge,
                detail: "The server could not be reached for \(step), or the connection was lost\(reason).")
        case .badAnswer:
            self.init(
                .failed, challenge: challenge, detail: "The server's answer to \(step) is too large, or no HTTP.")
        }
    }
}
