// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import CCurl

/// Why a SOCKS proxy made no connection (`CURLPX_…`; RFC 1928 §6).
package enum SOCKSFault: Sendable {
    /// Its rules forbid it.
    case notAllowed
    /// What answered follows no SOCKS, or ended.
    case noProxy
    /// The upstream refused the proxy.
    case refused
    /// The proxy cannot reach the upstream, or does not know its name.
    case unreachable
    /// It wants a login.
    case wantsLogin
    /// Anything else.
    case other

    /// `nil` where nothing went wrong.
    init?(code: Int) {
        guard code != CURLPX_OK.rawValue else { return nil }
        switch CURLproxycode(rawValue: UInt32(clamping: code)) {
        case CURLPX_BAD_VERSION, CURLPX_BAD_ADDRESS_TYPE, CURLPX_CLOSED, CURLPX_RECV_ADDRESS, CURLPX_RECV_AUTH,
            CURLPX_RECV_CONNECT, CURLPX_RECV_REQACK, CURLPX_SEND_AUTH, CURLPX_SEND_CONNECT, CURLPX_SEND_REQUEST:
            self = .noProxy
        case CURLPX_NO_AUTH, CURLPX_USER_REJECTED: self = .wantsLogin
        case CURLPX_REPLY_CONNECTION_REFUSED: self = .refused
        // Proxies say "general failure" for a name that they cannot resolve, too.
        case CURLPX_REPLY_GENERAL_SERVER_FAILURE, CURLPX_REPLY_HOST_UNREACHABLE, CURLPX_REPLY_NETWORK_UNREACHABLE,
            CURLPX_REPLY_TTL_EXPIRED:
            self = .unreachable
        case CURLPX_REPLY_NOT_ALLOWED: self = .notAllowed
        default: self = .other
        }
    }
}
