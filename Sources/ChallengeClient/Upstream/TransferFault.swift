// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Curl
internal import Glibc

/// What libcurl's result means, for an exchange and for a side request alike. The words are for callers: they name no
/// host, no address and no file.
enum TransferFault: Equatable {
    case protocolError(String)
    case timedOut(String)
    case tls(String)
    case unreachable(String)

    init(_ failure: TransferFailure) {
        if let fault = TLSFault(failure) {
            self = .tls(fault.words)
        } else if let words = Self.proxyWords(failure) {
            self = .unreachable(words)
        } else {
            self.init(failure.error, text: failure.text, systemError: failure.systemError)
        }
    }

    private init(_ error: CurlError, text: String, systemError: Int32) {
        switch error {
        case .couldNotResolveHost: self = .unreachable("its name cannot be resolved")
        case .couldNotConnect where [ENETUNREACH, EHOSTUNREACH, EACCES, EPERM].contains(systemError):
            self = .unreachable("this machine has no way to its address")
        case .couldNotConnect: self = .unreachable("it refuses the connection, or nothing listens there")
        // libcurl has one code for both, and other words for the second.
        case .operationTimedOut where text.hasPrefix("SSL connection timeout"):
            self = .timedOut("its TLS handshake did not finish in time")
        case .operationTimedOut: self = .timedOut("no connection came about in time")
        case .gotNothing: self = .unreachable("it closed the connection without an answer")
        case .partialFile: self = .unreachable("the connection was lost before the answer was complete")
        case .receiveError, .sendError, .sendFailRewind, .abortedByCallback, .http2:
            self = .unreachable("the connection was lost before the answer was complete")
        case .http2Stream: self = StreamReset(text).fault
        case .weirdServerReply: self = .protocolError("its answer ended in the middle of its head, or is no HTTP")
        case .unsupportedProtocol, .writeError, .tooLarge:
            self = .protocolError("its answer is not HTTP as the standard has it")
        default: self = .unreachable("the transfer failed")
        }
    }

    /// What is told where it was the proxy on the way that failed; `nil` where that did its part.
    private static func proxyWords(_ failure: TransferFailure) -> String? {
        if failure.error == .couldNotResolveProxy { return "the name of the proxy on the way cannot be resolved" }
        guard failure.isProxied, !failure.wasConnected else { return nil }
        if let fault = failure.socksFault { return words(fault) }
        switch failure.error {
        case .couldNotConnect: return "the proxy on the way refuses the connection, or nothing listens there"
        case .receiveError where failure.proxyStatus == 407: return "the proxy on the way wants a login (407)"
        case .receiveError where failure.proxyStatus >= 300:
            return "the proxy on the way answered with \(failure.proxyStatus) and made no connection"
        case .operationTimedOut, .outOfMemory: return nil
        default: return "what answers at the address of the proxy on the way is no such proxy, or closed the connection"
        }
    }

    private static func words(_ fault: SOCKSFault) -> String {
        switch fault {
        case .notAllowed: "the proxy on the way does not allow it"
        case .noProxy: "what answers at the address of the proxy on the way is no such proxy, or closed the connection"
        case .refused: "it refused the connection from the proxy on the way"
        case .unreachable: "the proxy on the way cannot reach it, or does not know its name"
        case .wantsLogin: "the proxy on the way wants a login"
        case .other: "the proxy on the way made no connection"
        }
    }
}
