// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import CCurl
internal import Glibc

/// Change of a descriptor's registration, in libcurl's order.
///
/// The order matters, because a descriptor number may be closed and reused within one call.
package enum SocketEffect: Sendable, Equatable {
    /// The descriptor has been closed; its registration is gone.
    case closed(Int32)
    /// An HTTP/1 transfer has ended successfully, and its connection is idle until reused or closed.
    case idle(Int32)
    /// Watch a descriptor.
    ///
    /// `isTransfer` distinguishes connections, which libcurl unregisters and registers again with every transfer, from
    /// the resolver's descriptors, which are unregistered once and whose closing is not reported.
    case watch(Int32, SocketInterest, isTransfer: Bool)
}

/// Events that libcurl needs from a descriptor.
package enum SocketInterest: Sendable {
    /// None (`CURL_POLL_REMOVE`).
    case none
    /// Readable.
    case read
    /// Readable and writable.
    case readWrite
    /// Writable.
    case write
}

/// Change of libcurl's single timer.
package enum TimerEffect: Sendable, Equatable {
    /// Call `timeout` after this delay; 0 means soon, but not from within a callback.
    case after(milliseconds: Int)
    /// No timer is needed.
    case cancelled
    /// The timer is unchanged.
    case unchanged
}

/// Collector for the callbacks of a multi handle and its connections.
///
/// Must outlive the multi handle and every connection, because libcurl closes sockets during its cleanup.
final class SocketRegistry {
    var timer = TimerEffect.unchanged
    private var effects: [SocketEffect] = []
    private var head = 0
    /// Flags by descriptor: true for a connection that `openCallback` opened.
    private var isTransfer: [Bool] = []
    /// Flags by descriptor: true if libcurl watches the connection.
    private var isWatched: [Bool] = []
    /// Counts by descriptor: number of times it was opened, to distinguish a closed connection from the next with its
    /// number.
    private var openings: [UInt64] = []

    /// Removes and returns the first effect.
    func next() -> SocketEffect? {
        guard head < effects.count else {
            if head > 0 {
                effects.removeAll(keepingCapacity: true)
                head = 0
            }
            return nil
        }
        defer { head += 1 }
        return effects[head]
    }

    static func from(_ data: UnsafeMutableRawPointer?) -> SocketRegistry? {
        guard let data = unsafe data else { return nil }
        return unsafe Unmanaged<SocketRegistry>.fromOpaque(data).takeUnretainedValue()
    }

    var opaque: UnsafeMutableRawPointer {
        unsafe Unmanaged.passUnretained(self).toOpaque()
    }

    /// Installs the socket callbacks in `easy`. A connection keeps those of the transfer that opened it.
    func install(in easy: OpaquePointer) -> CURLcode {
        unsafe ccurl_set_open_function(easy, openCallback)
        unsafe ccurl_set_pointer(easy, CURLOPT_OPENSOCKETDATA, opaque)
        unsafe ccurl_set_close_function(easy, closeCallback)
        return unsafe ccurl_set_pointer(easy, CURLOPT_CLOSESOCKETDATA, opaque)
    }

    /// Installs the callbacks in `multi`.
    func install(in multi: OpaquePointer) -> CURLMcode {
        unsafe ccurl_multi_set_timer_function(multi, timerCallback, opaque)
        return unsafe ccurl_multi_set_socket_function(multi, socketCallback, opaque)
    }

    fileprivate func open(_ family: Int32, _ type: Int32, _ proto: Int32) -> Int32 {
        let fd = socket(family, type | Int32(SOCK_CLOEXEC.rawValue), proto)
        guard let index = UInt32(exactly: fd).map(Int.init) else { return -1 }
        while isTransfer.count <= index {
            isTransfer.append(false)
            isWatched.append(false)
            openings.append(0)
        }
        openings[index] &+= 1
        isTransfer[index] = true
        isWatched[index] = false
        return fd
    }

    fileprivate func close(_ fd: Int32) -> Int32 {
        if isTransfer.indices.contains(Int(fd)) { isTransfer[Int(fd)] = false }
        // Recorded before the close, because another thread may reuse the number at once.
        effects.append(.closed(fd))
        return Glibc.close(fd)
    }

    fileprivate func wants(_ what: Int32, at fd: Int32) {
        let interest: SocketInterest
        switch what {
        case CURL_POLL_IN: interest = .read
        case CURL_POLL_OUT: interest = .write
        case CURL_POLL_INOUT: interest = .readWrite
        default: interest = .none
        }
        let isTransfer = isTransfer.indices.contains(Int(fd)) && isTransfer[Int(fd)]
        if isTransfer { isWatched[Int(fd)] = interest != .none }
        effects.append(.watch(fd, interest, isTransfer: isTransfer))
    }

    /// Returns how often the descriptor number `fd` has been opened.
    func opening(of fd: Int32) -> UInt64 { openings.indices.contains(Int(fd)) ? openings[Int(fd)] : 0 }

    /// Returns true if the last connection of `box` is still open.
    func isOpen(_ box: EasyBox) -> Bool {
        guard isTransfer.indices.contains(Int(box.socket)), isTransfer[Int(box.socket)] else { return false }
        return openings[Int(box.socket)] == box.opening
    }

    /// Reports the connection of `box` as idle, after its only transfer has ended.
    func ended(_ box: EasyBox) {
        let fd = box.socket
        guard isOpen(box), !isWatched[Int(fd)] else { return }
        effects.append(.idle(fd))
    }
}

@c private func openCallback(
    _ data: UnsafeMutableRawPointer?, _ purpose: curlsocktype, _ address: UnsafeMutablePointer<curl_sockaddr>?
) -> curl_socket_t {
    guard let registry = unsafe SocketRegistry.from(data), let address = unsafe address else { return CURL_SOCKET_BAD }
    return unsafe registry.open(address.pointee.family, address.pointee.socktype, address.pointee.protocol)
}

@c private func closeCallback(_ data: UnsafeMutableRawPointer?, _ fd: curl_socket_t) -> Int32 {
    unsafe SocketRegistry.from(data)?.close(fd) ?? close(fd)
}

@c private func socketCallback(
    _ easy: OpaquePointer?, _ fd: curl_socket_t, _ what: Int32, _ data: UnsafeMutableRawPointer?,
    _ socketData: UnsafeMutableRawPointer?
) -> Int32 {
    guard let registry = unsafe SocketRegistry.from(data) else { return 0 }
    registry.wants(what, at: fd)
    if what != CURL_POLL_REMOVE, let easy = unsafe easy, let box = unsafe EasyBox.from(ccurl_get_private(easy)) {
        box.socket = fd
        box.opening = registry.opening(of: fd)
    }
    return 0
}

@c private func timerCallback(_ multi: OpaquePointer?, _ milliseconds: Int, _ data: UnsafeMutableRawPointer?) -> Int32 {
    unsafe SocketRegistry.from(data)?.timer = milliseconds < 0 ? .cancelled : .after(milliseconds: milliseconds)
    return 0
}
