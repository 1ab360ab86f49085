// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

public import ChallengeHandling
public import FoundationEssentials

/// The reason for a missing or incomplete response to a `ChallengeClient`'s request.
public struct ClientError: Error, Sendable, Equatable {
    /// The kinds of errors.
    public enum Kind: Sendable, Equatable {
        /// The request is invalid: its URL, a field, or the length of its body. Nothing was sent.
        case badRequest
        /// A challenge came after more of the body was sent than is held (`ClientConfiguration.Limits.replay`).
        case bodyNotReplayable
        /// The response's body exceeds the limit set by the program.
        case bodyTooLong
        /// The task was cancelled, and the transfer with it.
        case cancelled
        /// A login, logout or authorization of this client is under way already.
        case inProcess
        /// The login that the request needs failed.
        case login(LoginFailure)
        /// The configuration has no MobileFirst server.
        case noServer
        /// The limit of requests, or of requests waiting for a login, is reached.
        case overloaded
        /// The program's own body failed, or did not come in time.
        case requestBody
        /// The client was shut down.
        case shutDown
        /// A time limit passed; `detail` names the limit.
        case timedOut
        /// No memory, thread or descriptor is available for another client.
        case unavailable
        /// The server could not be reached, or the connection was lost.
        case unreachable
        /// The server's answer is not valid HTTP (RFC 9112).
        case upstreamProtocol
        /// The TLS handshake failed.
        case upstreamTLS
    }

    /// The kind.
    public var kind: Kind
    /// The cause and the remedy in a sentence or two. Never a secret.
    public var detail: String

    /// Creates an error.
    public init(_ kind: Kind, detail: String) {
        self.kind = kind
        self.detail = detail
    }

    /// The failure of the needed login, if the kind is `login`.
    public var loginFailure: LoginFailure? {
        if case .login(let failure) = kind { failure } else { nil }
    }

    /// The error after a cancellation by the program.
    static let cancelled = ClientError(.cancelled, detail: "The task was cancelled, and the request with it.")
    /// The error after the client's shutdown.
    static let shutDown = ClientError(.shutDown, detail: "The client was shut down. Make another one.")

    /// The error if libcurl cannot be initialized.
    static let unavailable = ClientError(.unavailable, detail: "libcurl cannot be initialized: out of memory.")

    /// Creates the error of a failed login.
    init(_ failure: LoginFailure) {
        self.init(.login(failure), detail: ProgramWords.detail(of: failure))
    }

    /// Creates the error of a failed exchange.
    init(_ error: ExchangeError) {
        let kind: Kind =
            switch error.kind {
            case .bodyNotReplayable: .bodyNotReplayable
            case .callerGone: .cancelled
            case .callerNotAllowed: .badRequest
            case .login(let failure): .login(failure)
            case .loginTimeout, .upstreamTimeout: .timedOut
            case .overloaded: .overloaded
            case .requestUnfit: .badRequest
            case .upstreamProtocol: .upstreamProtocol
            case .upstreamTLS: .upstreamTLS
            case .upstreamUnreachable: .unreachable
            }
        let detail = if case .login(let failure) = error.kind { ProgramWords.detail(of: failure) } else { error.detail }
        self.init(kind, detail: ProgramWords.text(detail))
    }
}

extension ClientError: CustomStringConvertible {
    /// The detail.
    public var description: String { detail }
}

extension ClientError: LocalizedError {
    /// The detail, for `localizedDescription`.
    public var errorDescription: String? { detail }
}
