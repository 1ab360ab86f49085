// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

public import ChallengeHandling

/// Why a request of a `ChallengeClient` brought no response, or no whole one.
public struct ClientError: Error, Sendable, Equatable {
    /// The kinds.
    public enum Kind: Sendable, Equatable {
        /// The request cannot be sent as it is: its address, a field, or the length of its body. Nothing was sent.
        case badRequest
        /// A challenge came when more of the body had gone than is kept (`ClientConfiguration.Limits.replay`).
        case bodyNotReplayable
        /// The response's body is longer than the program wanted it.
        case bodyTooLong
        /// The task was cancelled, and the transfer with it.
        case cancelled
        /// A login, logout or authorization of the same client is under way already.
        case inProcess
        /// The login that the request needs failed.
        case login(LoginFailure)
        /// There is no MobileFirst server in the configuration.
        case noServer
        /// As many requests run, or wait for a login, as the limits allow.
        case overloaded
        /// The program's own body failed, or did not come in time.
        case requestBody
        /// The client was shut down.
        case shutDown
        /// A time limit passed; the detail says which.
        case timedOut
        /// This machine has no memory, thread or descriptor for another client.
        case unavailable
        /// The server could not be reached, or the connection was lost.
        case unreachable
        /// The server's answer is not HTTP as RFC 9112 has it.
        case upstreamProtocol
        /// The TLS handshake failed.
        case upstreamTLS
    }

    /// The kind.
    public var kind: Kind
    /// What happened and what to do, in a sentence or two. Never a secret.
    public var detail: String

    /// An error.
    public init(_ kind: Kind, detail: String) {
        self.kind = kind
        self.detail = detail
    }

    /// The failure of the login that was needed, if that is what happened.
    public var loginFailure: LoginFailure? {
        if case .login(let failure) = kind { failure } else { nil }
    }

    /// What the program cancelled.
    static let cancelled = ClientError(.cancelled, detail: "The task was cancelled, and the request with it.")
    /// What ends with the client.
    static let shutDown = ClientError(.shutDown, detail: "The client was shut down. Make another one.")

    /// libcurl could not be had.
    static let unavailable = ClientError(.unavailable, detail: "libcurl cannot be initialised: there is no memory.")

    /// The login failed.
    init(_ failure: LoginFailure) {
        self.init(.login(failure), detail: failure.detail)
    }

    /// An exchange came to that end.
    init(_ error: ExchangeError) {
        let kind: Kind =
            switch error.kind {
            case .bodyNotReplayable: .bodyNotReplayable
            case .callerGone: .cancelled
            case .callerNotAllowed: .badRequest
            case .login(let failure): .login(failure)
            case .loginTimeout, .upstreamTimeout: .timedOut
            case .overloaded: .overloaded
            case .upstreamProtocol: .upstreamProtocol
            case .upstreamTLS: .upstreamTLS
            case .upstreamUnreachable: .unreachable
            }
        self.init(kind, detail: error.detail)
    }
}

extension ClientError: CustomStringConvertible {
    /// The detail.
    public var description: String { detail }
}
