// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

package import Curl

/// All that is known of why a transfer failed. Its `text` is for the log: it may name hosts, addresses and files.
package struct TransferFailure: Sendable, Equatable {
    /// libcurl's code.
    package var error: CurlError
    /// libcurl's words, or nothing.
    package var text = ""
    /// What the check of the server's certificate came to, by OpenSSL's numbers.
    package var verifyResult = 0
    /// The status of a proxy's answer to CONNECT, 0 if there was none.
    package var proxyStatus = 0
    /// What went wrong with a SOCKS proxy, if anything did.
    package var socksFault: SOCKSFault?
    /// The system's number for why no connection came about, 0 where it has none.
    package var systemError: Int32 = 0
    /// True if there is a proxy on the way.
    package var isProxied = false
    /// True if a connection was there, TLS included, before it failed.
    package var wasConnected = false

    /// True if the connection had ended before anything of the request was sent.
    package var isStale = false
    /// True if the server went away, and may not have taken the request.
    package var mayNotBeTaken = false

    /// A failure of which no more is known.
    package init(_ error: CurlError) { self.error = error }

    /// The failure of the run that `handle` has ended.
    package init(_ error: CurlError, of handle: EasyHandle, isProxied: Bool) {
        self.error = error
        self.isProxied = isProxied
        text = handle.errorText
        verifyResult = handle.verifyResult
        proxyStatus = handle.proxyStatus
        socksFault = handle.socksFault
        systemError = handle.systemError
        wasConnected = handle.wasConnected
    }

    /// For the log: libcurl's words, or those for its code.
    package var cause: String { text.isEmpty ? error.description : text }
}
