// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import CCurl
internal import Glibc

/// How a connection within TLS ended. libcurl 7.88 takes its end for good order whether or not the server said so
/// (`close_notify`; RFC 8446 §6.1): anybody on the way could cut short an answer that only the connection's end ends.
enum TLSClosure {
    /// It has not ended in good order so far.
    case unannounced
    /// The server said that it ends here.
    case announced
    /// Nobody looks, or there is no TLS that can be looked at.
    case unknown

    /// What OpenSSL knows of the connection of `easy`, while a transfer runs on it.
    static func of(_ easy: OpaquePointer) -> TLSClosure {
        // libcurl brings the library along; nothing else here needs it.
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
    /// Has it watched how TLS ends, for the transfer under way. Meant for one whose answer only the connection's end ends,
    /// as it costs a call for each piece of it. May be called from within the delegate.
    package func watchClosure() {
        box.closure = unsafe .of(easy)
        guard box.closure != .unknown else { return }
        unsafe box.watched = easy
        unsafe ccurl_set_progress_function(easy, progressCallback)
        unsafe ccurl_set_pointer(easy, CURLOPT_XFERINFODATA, box.opaque)
        unsafe ccurl_set_long(easy, CURLOPT_NOPROGRESS, 0)
    }

    /// Takes that back, for the next transfer.
    func forgetClosure() {
        guard unsafe box.watched != nil else { return }
        unsafe box.watched = nil
        box.closure = .unknown
        unsafe ccurl_set_long(easy, CURLOPT_NOPROGRESS, 1)
    }

    /// True if the server has said that TLS ends here, for the connection that the transfer under way has got.
    package var isClosedByServer: Bool { unsafe TLSClosure.of(easy) == .announced }

    /// True if TLS ended without the server's word, where that was watched.
    package var endedUnannounced: Bool { box.closure == .unannounced }
}

/// Called many times during a transfer, and last before its connection goes.
@c private func progressCallback(
    _ data: UnsafeMutableRawPointer?, _ total: curl_off_t, _ now: curl_off_t, _ totalUp: curl_off_t, _ nowUp: curl_off_t
) -> Int32 {
    guard let box = unsafe EasyBox.from(data), let easy = unsafe box.watched, box.closure == .unannounced else {
        return 0
    }
    // The connection may be gone by now: then what was seen last holds.
    if case .announced = unsafe TLSClosure.of(easy) { box.closure = .announced }
    return 0
}
