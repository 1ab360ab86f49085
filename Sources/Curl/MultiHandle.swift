// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import CCurl

/// A transfer that has ended.
package struct Completion {
    /// The handle, free for the next transfer; or with a connection, where it is one that only connects.
    package let handle: EasyHandle
    /// To whom to tell it.
    package let delegate: any TransferDelegate
    /// Why it failed, or `nil`.
    package let error: CurlError?
}

/// Many transfers on one thread, and the connections that they leave open.
///
/// It does no I/O of its own: the owner tells it which descriptors are ready and when its time has come, and after
/// each call, `EasyHandle.unpause` included, carries out the effects (`nextEffect` until there is none, `takeTimer`)
/// and looks for completions. Callbacks only collect, since libcurl refuses calls from within its own (curl #8286).
///
/// A transfer may end within `add` or `timeout`, without any event: look for completions before every wait.
@safe
package final class MultiHandle {
    private let multi: OpaquePointer
    private let ledger = SocketLedger()
    /// Retained here from `add` until the completion is handed out.
    private var members: [EasyHandle] = []

    /// A multi handle that keeps up to `maxIdle` connections for later and opens up to `maxPerHost` to one host (0: no
    /// limit; further transfers wait). Transfers share HTTP/2 connections.
    package init(maxIdle: Int = 256, maxPerHost: Int = 0) throws(CurlError) {
        if let error = CurlLibrary.status { throw error }
        guard let multi = unsafe curl_multi_init() else { throw .failedInit }
        unsafe self.multi = multi
        let codes = unsafe [
            ledger.install(in: multi),
            ccurl_multi_set_long(multi, CURLMOPT_MAXCONNECTS, max(1, maxIdle)),
            ccurl_multi_set_long(multi, CURLMOPT_MAX_HOST_CONNECTIONS, max(0, maxPerHost)),
            ccurl_multi_set_long(multi, CURLMOPT_PIPELINING, Int(CURLPIPE_MULTIPLEX)),
        ]
        guard codes.allSatisfy({ $0 == CURLM_OK }) else { throw .failedInit }
    }

    deinit {
        for member in members {
            unsafe curl_multi_remove_handle(multi, member.easy)
            member.box.position = -1
            member.end()
        }
        // Closes the idle connections, hence calls the ledger, which is released only after this.
        unsafe curl_multi_cleanup(multi)
        withExtendedLifetime(ledger) {}
    }

    /// How many transfers are under way or wait for their completion to be taken.
    package var count: Int { members.count }

    /// Begins a transfer. Handle and delegate are retained until the completion is handed out or `remove`.
    /// Throws if the handle's fields cannot be set or libcurl has no memory.
    package func add(_ handle: EasyHandle, delegate: any TransferDelegate) throws(CurlError) {
        precondition(!handle.isActive, "a handle does one transfer at a time")
        try handle.begin(delegate: delegate, ledger: ledger)
        handle.box.position = members.count
        members.append(handle)
        guard unsafe curl_multi_add_handle(multi, handle.easy) == CURLM_OK else {
            release(handle)
            throw .outOfMemory
        }
    }

    /// Breaks a transfer off, or takes back one that has ended; its connection closes unless it is at rest. The
    /// delegate is told nothing more. Does nothing if the handle is not in here.
    package func remove(_ handle: EasyHandle) {
        guard members.indices.contains(handle.box.position), members[handle.box.position] === handle else { return }
        unsafe curl_multi_remove_handle(multi, handle.easy)
        release(handle)
    }

    /// A descriptor is ready.
    package func socketReady(_ fd: Int32, readable: Bool, writable: Bool, error: Bool) {
        let events =
            (readable ? CURL_CSELECT_IN : 0) | (writable ? CURL_CSELECT_OUT : 0) | (error ? CURL_CSELECT_ERR : 0)
        act(on: fd, events)
    }

    /// The time of the timer effect has come.
    package func timeout() {
        act(on: CURL_SOCKET_TIMEOUT, 0)
    }

    /// The next transfer that has ended. Its handle is out of here and may be added again at once; but one that was only
    /// to connect, and did, stays until `remove`, which closes the connection.
    package func nextCompleted() -> Completion? {
        var code = CURLE_OK
        guard let easy = unsafe ccurl_multi_next_done(multi, &code) else { return nil }
        guard let box = unsafe EasyBox.from(ccurl_get_private(easy)), members.indices.contains(box.position) else {
            return nil
        }
        let handle = members[box.position]
        if handle.keepsConnection, code == CURLE_OK, let delegate = box.delegate {
            box.delegate = nil
            return Completion(handle: handle, delegate: delegate, error: nil)
        }
        unsafe curl_multi_remove_handle(multi, easy)
        // Of HTTP/2 others may use the connection, and its server may speak at any time.
        if code == CURLE_OK, handle.speaksHTTP1 { ledger.ended(box) }
        guard let delegate = box.delegate else { return nil }
        release(handle)
        return Completion(handle: handle, delegate: delegate, error: CurlError(code: code))
    }

    /// The next thing to do at a descriptor.
    package func nextEffect() -> SocketEffect? {
        ledger.next()
    }

    /// What to do with the timer since the last call.
    package func takeTimer() -> TimerEffect {
        defer { ledger.timer = .unchanged }
        return ledger.timer
    }

    private func act(on fd: Int32, _ events: Int32) {
        var running: Int32 = 0
        let code = unsafe curl_multi_socket_action(multi, fd, events, &running)
        assert(code == CURLM_OK, "curl_multi_socket_action: \(MultiError(rawValue: code.rawValue))")
    }

    private func release(_ handle: EasyHandle) {
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
