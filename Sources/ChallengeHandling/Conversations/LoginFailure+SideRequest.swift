// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

extension LoginFailure {
    /// The end of a login whose request, named by `step`, brought no answer: nothing is known about the credential.
    init(_ error: SideRequestError, step: String, challenge: String) {
        let reason = error.told.isEmpty ? "" : ": \(error.told)"
        let (code, detail): (Code, String)
        switch error.kind {
        case .guarded(let failure):
            self = failure
            return
        case .timedOut:
            (code, detail) = (
                .timedOut,
                "The server did not answer \(step) in time. A later request tries again; look at what keeps the server."
            )
        case .originNotAllowed:
            (code, detail) = (
                .failed,
                "The address for \(step) is none that the configuration names, so nothing was sent. Name it there."
            )
        case .tls:
            (code, detail) = (.upstreamTLS, "The TLS handshake with the server for \(step) failed\(reason).")
        case .unreachable:
            (code, detail) = (
                .failed, "The server could not be reached for \(step), or the connection was lost\(reason)."
            )
        case .badAnswer:
            (code, detail) = (
                .failed,
                "The server's answer to \(step) is too large, or no HTTP. Check the address; the daemon's log has the cause."
            )
        }
        self.init(code, challenge: challenge, detail: detail, cause: error.reason)
    }
}
