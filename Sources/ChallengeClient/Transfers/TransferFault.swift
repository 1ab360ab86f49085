// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Curl

/// What libcurl's result means, for an exchange and for a side request alike.
enum TransferFault {
    case protocolError(String)
    case timedOut(String)
    case tls
    case unreachable(String)

    init(_ error: CurlError) {
        switch error {
        case .couldNotResolveHost: self = .unreachable("its name cannot be resolved")
        case .couldNotResolveProxy: self = .unreachable("the name of the proxy on the way cannot be resolved")
        case .couldNotConnect: self = .unreachable("it refuses the connection, or nothing listens there")
        case .operationTimedOut: self = .timedOut("no connection came about in time")
        case .gotNothing: self = .unreachable("it closed the connection without an answer")
        case .partialFile: self = .unreachable("the connection was lost in the middle of the answer")
        case .receiveError, .sendError, .sendFailRewind, .abortedByCallback:
            self = .unreachable("the connection was lost before the answer was complete")
        case .weirdServerReply, .unsupportedProtocol, .http2, .http2Stream, .writeError:
            self = .protocolError("its answer is not HTTP as the standard has it")
        case .sslConnectError, .peerFailedVerification, .sslCertificateProblem, .sslCAFile, .sslIssuerError,
            .sslPinnedKeyMismatch, .sslCipher, .sslInvalidCertificateStatus, .sslClientCertificate:
            self = .tls
        default: self = .unreachable("the transfer failed")
        }
    }
}
