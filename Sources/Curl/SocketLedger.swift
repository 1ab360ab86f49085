// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import CCurl
internal import Glibc

/// What libcurl wants done at a descriptor, in the order in which it wants it: a number may be closed and used again
/// within one call.
package enum SocketEffect: Sendable, Equatable {
    /// The descriptor is closed now: forget it.
    case closed(Int32)
    /// A transfer over HTTP/1 has ended well, and its connection rests until another takes it up or it is closed.
    case idle(Int32)
    /// Watch for this. `isTransfer` tells a connection, which libcurl drops and takes up again with every transfer,
    /// from the resolver's own descriptors, which go away for good and of whose closing we are not told.
    case watch(Int32, SocketInterest, isTransfer: Bool)
}

/// What libcurl wants to be told of a descriptor.
package enum SocketInterest: Sendable {
    /// Nothing (`CURL_POLL_REMOVE`).
    case none
    /// Readable.
    case read
    /// Both.
    case readWrite
    /// Writable.
    case write
}

/// What libcurl wants done with its one timer.
package enum TimerEffect: Sendable, Equatable {
    /// Call `timeout` after so many milliseconds; 0: soon, but not from within a callback.
    case after(milliseconds: Int)
    /// It needs none.
    case cancelled
    /// It is as it was.
    case unchanged
}

/// What the callbacks of a multi handle and of its connections collect. It outlives the multi handle and every
/// connection: libcurl closes sockets during its cleanup.
final class SocketLedger {
    var timer = TimerEffect.unchanged
    private var effects: [SocketEffect] = []
    private var head = 0
    /// By descriptor: whether it is a connection that was opened through us.
    private var isTransfer: [Bool] = []
    /// Likewise: whether libcurl wants to be told of it.
    private var isWatched: [Bool] = []
    /// Likewise: how often a connection was opened there, so that one that was closed is not taken for the next of its number.
    private var openings: [UInt64] = []

    /// Takes the first effect.
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

    static func from(_ data: UnsafeMutableRawPointer?) -> SocketLedger? {
        guard let data = unsafe data else { return nil }
        return unsafe Unmanaged<SocketLedger>.fromOpaque(data).takeUnretainedValue()
    }

    var opaque: UnsafeMutableRawPointer {
        unsafe Unmanaged.passUnretained(self).toOpaque()
    }

    /// Connects the socket callbacks of `easy` to this ledger. A connection keeps what the transfer had that opened it.
    func install(in easy: OpaquePointer) -> CURLcode {
        unsafe ccurl_set_open_function(easy, openCallback)
        unsafe ccurl_set_pointer(easy, CURLOPT_OPENSOCKETDATA, opaque)
        unsafe ccurl_set_close_function(easy, closeCallback)
        return unsafe ccurl_set_pointer(easy, CURLOPT_CLOSESOCKETDATA, opaque)
    }

    /// Connects the callbacks of `multi` to this ledger.
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
        // Noted before: the number may be taken by another thread at once.
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

    /// Which opening of its number the connection at `fd` is.
    func opening(of fd: Int32) -> UInt64 { openings.indices.contains(Int(fd)) ? openings[Int(fd)] : 0 }

    /// Returns whether the connection is open that `box` had last.
    func isOpen(_ box: EasyBox) -> Bool {
        guard isTransfer.indices.contains(Int(box.socket)), isTransfer[Int(box.socket)] else { return false }
        return openings[Int(box.socket)] == box.opening
    }

    /// The transfer of `box` has ended, and was the only one on its connection.
    func ended(_ box: EasyBox) {
        let fd = box.socket
        guard isOpen(box), !isWatched[Int(fd)] else { return }
        effects.append(.idle(fd))
    }
}

@c private func openCallback(
    _ data: UnsafeMutableRawPointer?, _ purpose: curlsocktype, _ address: UnsafeMutablePointer<curl_sockaddr>?
) -> curl_socket_t {
    guard let ledger = unsafe SocketLedger.from(data), let address = unsafe address else { return CURL_SOCKET_BAD }
    return unsafe ledger.open(address.pointee.family, address.pointee.socktype, address.pointee.protocol)
}

@c private func closeCallback(_ data: UnsafeMutableRawPointer?, _ fd: curl_socket_t) -> Int32 {
    unsafe SocketLedger.from(data)?.close(fd) ?? close(fd)
}

@c private func socketCallback(
    _ easy: OpaquePointer?, _ fd: curl_socket_t, _ what: Int32, _ data: UnsafeMutableRawPointer?,
    _ socketData: UnsafeMutableRawPointer?
) -> Int32 {
    guard let ledger = unsafe SocketLedger.from(data) else { return 0 }
    ledger.wants(what, at: fd)
    if what != CURL_POLL_REMOVE, let easy = unsafe easy, let box = unsafe EasyBox.from(ccurl_get_private(easy)) {
        box.socket = fd
        box.opening = ledger.opening(of: fd)
    }
    return 0
}

@c private func timerCallback(_ multi: OpaquePointer?, _ milliseconds: Int, _ data: UnsafeMutableRawPointer?) -> Int32 {
    unsafe SocketLedger.from(data)?.timer = milliseconds < 0 ? .cancelled : .after(milliseconds: milliseconds)
    return 0
}
