// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import CCurl
internal import Glibc

/// End of a TLS connection: with or without the server's `close_notify` (RFC 8446 §6.1).
///
/// libcurl 7.88 accepts both as a regular end, so an attacker on the path could truncate a response that ends with the
/// connection.
enum TLSClosure {
    /// No `close_notify` has arrived so far.
    case unannounced
    /// The server sent `close_notify`.
    case announced
    /// The connection is not observed, or has no TLS that can be observed.
    case unknown

    /// Returns OpenSSL's state of the connection of `easy`, during a transfer.
    static func of(_ easy: OpaquePointer) -> TLSClosure {
        // libcurl has loaded the library; nothing else here needs it.
        guard let getShutdown = unsafe getShutdown, let connection = unsafe ccurl_get_openssl(easy) else {
            return .unknown
        }
        return unsafe getShutdown(connection) & received != 0 ? .announced : .unannounced
    }
}

/// SSL_RECEIVED_SHUTDOWN.
private let received: Int32 = 2
private typealias GetShutdown = @convention(c) (UnsafeMutableRawPointer?) -> Int32
private let getShutdown: GetShutdown? = unsafe dlsym(nil, "SSL_get_shutdown").map {
    unsafe unsafeBitCast($0, to: GetShutdown.self)
}

extension EasyHandle {
    /// Observes the end of TLS for the current transfer; the delegate may call this.
    ///
    /// Meant for a response that ends with the connection, because it costs a call for each piece of data.
    package func watchClosure() {
        box.closure = unsafe .of(easy)
        guard box.closure != .unknown else { return }
        unsafe box.watched = easy
        unsafe ccurl_set_progress_function(easy, progressCallback)
        unsafe ccurl_set_pointer(easy, CURLOPT_XFERINFODATA, box.opaque)
        unsafe ccurl_set_long(easy, CURLOPT_NOPROGRESS, 0)
    }

    /// Ends the observation, for the next transfer.
    func forgetClosure() {
        guard unsafe box.watched != nil else { return }
        unsafe box.watched = nil
        box.closure = .unknown
        unsafe ccurl_set_long(easy, CURLOPT_NOPROGRESS, 1)
    }

    /// True if the server has sent `close_notify` on the current transfer's connection.
    package var isClosedByServer: Bool { unsafe TLSClosure.of(easy) == .announced }

    /// True if TLS ended without `close_notify`, provided this was observed.
    package var endedUnannounced: Bool { box.closure == .unannounced }
}

/// Called many times during a transfer, the last time before its connection is released.
@c private func progressCallback(
    _ data: UnsafeMutableRawPointer?, _ total: curl_off_t, _ now: curl_off_t, _ totalUp: curl_off_t, _ nowUp: curl_off_t
) -> Int32 {
    guard let box = unsafe EasyBox.from(data), let easy = unsafe box.watched, box.closure == .unannounced else {
        return 0
    }
    // The connection may be gone by now: the last observation then remains.
    if case .announced = unsafe TLSClosure.of(easy) { box.closure = .announced }
    return 0
}
