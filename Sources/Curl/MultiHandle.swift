// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import CCurl

/// Transfer that has ended.
package struct Completion {
    /// The handle, free for the next transfer, or with a connection if it only connects.
    package let handle: EasyHandle
    /// Delegate to be notified.
    package let delegate: any TransferDelegate
    /// Error, or nil on success.
    package let error: CurlError?
}

/// Concurrent transfers on one thread, with the connections that they leave open.
///
/// Does no I/O itself: the owner reports ready descriptors and expired timers. After each call, including
/// `EasyHandle.unpause`, the owner must apply the effects (`nextEffect` until nil, and `takeTimer`) and poll for
/// completions. Callbacks only collect, because libcurl refuses calls from within its callbacks (curl #8286).
///
/// A transfer may end within `add` or `timeout`, without any event: poll for completions before every wait.
@safe
package final class MultiHandle {
    private let multi: OpaquePointer
    private let registry = SocketRegistry()
    /// Handles retained from `add` until their completion is delivered.
    private var members: [EasyHandle] = []
    /// Members that libcurl will not end, and their error.
    private var lost: [(handle: EasyHandle, error: CurlError)] = []
    /// True after an error of libcurl's own. The owner replaces the handle, which lives until its last member is gone.
    package private(set) var isBroken = false
    private var isClosed = false

    /// Creates a multi handle with limits for connections.
    ///
    /// Keeps up to `maxIdle` idle connections, and opens up to `maxPerHost` per host (0 is unlimited); further
    /// transfers wait. Transfers share HTTP/2 connections.
    package init(maxIdle: Int = 256, maxPerHost: Int = 0) throws(CurlError) {
        if let error = CurlLibrary.status { throw error }
        guard let multi = unsafe curl_multi_init() else { throw .failedInit }
        unsafe self.multi = multi
        let codes = unsafe [
            registry.install(in: multi),
            ccurl_multi_set_long(multi, CURLMOPT_MAXCONNECTS, max(1, maxIdle)),
            ccurl_multi_set_long(multi, CURLMOPT_MAX_HOST_CONNECTIONS, max(0, maxPerHost)),
            ccurl_multi_set_long(multi, CURLMOPT_PIPELINING, Int(CURLPIPE_MULTIPLEX)),
        ]
        guard codes.allSatisfy({ $0 == CURLM_OK }) else { throw .failedInit }
    }

    deinit {
        close()
        withExtendedLifetime(registry) {}
    }

    /// Closes all connections. The effects must still be applied; nothing else may be called afterwards.
    package func close() {
        guard !isClosed else { return }
        isClosed = true
        for member in members {
            unsafe curl_multi_remove_handle(multi, member.easy)
            member.box.position = -1
            member.end()
        }
        members = []
        // Closes the idle connections and so calls the registry.
        unsafe curl_multi_cleanup(multi)
    }

    /// Number of transfers that are running or whose completion was not fetched.
    package var count: Int { members.count }

    /// Starts a transfer.
    ///
    /// Retains handle and delegate until the completion is delivered or `remove` is called. Throws if the handle's
    /// fields cannot be set, or if libcurl is out of memory.
    package func add(_ handle: EasyHandle, delegate: any TransferDelegate) throws(CurlError) {
        precondition(!handle.isActive, "a handle does one transfer at a time")
        if isBroken { throw .outOfMemory }
        try handle.begin(delegate: delegate, registry: registry)
        handle.box.position = members.count
        members.append(handle)
        guard unsafe curl_multi_add_handle(multi, handle.easy) == CURLM_OK else {
            release(handle)
            throw .outOfMemory
        }
    }

    /// Cancels a transfer or removes one that has ended; the delegate is not called any more.
    ///
    /// Its connection is closed unless it is idle. Does nothing if the handle is not a member.
    package func remove(_ handle: EasyHandle) {
        guard members.indices.contains(handle.box.position), members[handle.box.position] === handle else { return }
        unsafe curl_multi_remove_handle(multi, handle.easy)
        release(handle)
    }

    /// Processes the events of a ready descriptor.
    package func socketReady(_ fd: Int32, readable: Bool, writable: Bool, error: Bool) {
        let events =
            (readable ? CURL_CSELECT_IN : 0) | (writable ? CURL_CSELECT_OUT : 0) | (error ? CURL_CSELECT_ERR : 0)
        act(on: fd, events)
    }

    /// Processes the expiry of the timer effect.
    package func timeout() {
        act(on: CURL_SOCKET_TIMEOUT, 0)
    }

    /// Returns the next transfer that has ended.
    ///
    /// Its handle has been removed and may be added again at once, except a handle that only connects: it stays until
    /// `remove`, which closes the connection.
    package func nextCompleted() -> Completion? {
        var code = CURLE_OK
        guard !isBroken, let easy = unsafe ccurl_multi_next_done(multi, &code) else { return nextLost() }
        guard let box = unsafe EasyBox.from(ccurl_get_private(easy)), members.indices.contains(box.position) else {
            return nil
        }
        let handle = members[box.position]
        if handle.keepsConnection, code == CURLE_OK, let delegate = box.delegate {
            box.delegate = nil
            return Completion(handle: handle, delegate: delegate, error: nil)
        }
        unsafe curl_multi_remove_handle(multi, easy)
        // Other transfers may use an HTTP/2 connection, and its server may send at any time.
        if code == CURLE_OK, handle.speaksHTTP1 { registry.ended(box) }
        guard let delegate = box.delegate else { return nil }
        release(handle)
        return Completion(handle: handle, delegate: delegate, error: CurlError(code: code))
    }

    /// Returns the next change of a descriptor's registration.
    package func nextEffect() -> SocketEffect? {
        registry.next()
    }

    /// Returns the change of the timer since the last call.
    package func takeTimer() -> TimerEffect {
        defer { registry.timer = .unchanged }
        return registry.timer
    }

    private func act(on fd: Int32, _ events: Int32) {
        if isBroken { return }
        var running: Int32 = 0
        let code = unsafe curl_multi_socket_action(multi, fd, events, &running)
        if code != CURLM_OK { recordFault(MultiError(rawValue: code.rawValue)) }
    }

    /// Ends all transfers after an error of libcurl's own, such as a lack of memory; no other can be started.
    ///
    /// libcurl does not name the transfer that is concerned, and never continues it. Its table of sockets may hold a destroyed entry,
    /// at whose next use the process would end (7.88: a division by zero in `Curl_hash_add`).
    package func recordFault(_ fault: MultiError) {
        isBroken = true
        let error = fault == .outOfMemory ? CurlError.outOfMemory : .failedInit
        for member in members where member.box.delegate != nil { lost.append((member, error)) }
    }

    /// Ends the transfers at a descriptor that cannot be watched.
    package func socketUnwatched(_ fd: Int32) {
        for member in members where member.box.socket == fd { lost.append((member, .outOfMemory)) }
    }

    private func nextLost() -> Completion? {
        while let (handle, error) = lost.popLast() {
            guard handle.box.position >= 0, let delegate = handle.box.delegate else { continue }
            unsafe curl_multi_remove_handle(multi, handle.easy)
            release(handle)
            return Completion(handle: handle, delegate: delegate, error: error)
        }
        return nil
    }

    private func release(_ handle: EasyHandle) {
        if !lost.isEmpty { lost.removeAll { $0.handle === handle } }
        let position = handle.box.position
        let last = members.removeLast()
        if last !== handle {
            members[position] = last
            last.box.position = position
        }
        handle.box.position = -1
        handle.end()
    }
}
