// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Glibc
internal import Synchronization

/// Guard of the thread's time against HTTP/2 frames without content: it fails a session that exceeds its allowance.
///
/// libcurl has no limit for such frames. Hence this module defines, as `StreamWindow` does, the function of libnghttp2
/// that libcurl gives received bytes to, and those by which it registers what it wants to be told: a field, data, and
/// bytes to be sent. They note what they see in the session's `FrameAllowance`, and change nothing else.
///
/// Content is what libcurl is told, not what frames seem to have: data of a stream that has ended is ignored by
/// libnghttp2, and counts as nothing. A libcurl that registers other functions is not guarded.
private enum FrameGuard {
    /// Functions of libcurl's, as addresses; 0 before the first session.
    static let onField = Atomic<UInt>(0)
    static let onData = Atomic<UInt>(0)
    static let onSend = Atomic<UInt>(0)
    /// True if libcurl has registered two different functions, of which only one can be called.
    static let isOff = Atomic<Bool>(false)

    /// Allowances by the addresses of sessions.
    private static let sessions = Mutex<[UInt: FrameAllowance]>([:])
    /// Content of the bytes that the thread is giving to libnghttp2 at the moment; unset outside of the call.
    private static let current: pthread_key_t = {
        var key = pthread_key_t()
        unsafe pthread_key_create(&key, nil)
        return key
    }()

    /// Replaces a function that libcurl registers by this program's. Returns the one to register.
    static func replace(
        _ function: UnsafeRawPointer?, by own: UnsafeRawPointer, keptIn slot: borrowing Atomic<UInt>
    ) -> UnsafeRawPointer? {
        guard let function = unsafe function else { return nil }
        let address = UInt(bitPattern: function)
        let (isFirst, former) = slot.compareExchange(expected: 0, desired: address, ordering: .acquiringAndReleasing)
        if isFirst || former == address { return unsafe own }
        isOff.store(true, ordering: .relaxed)
        return unsafe function
    }

    /// Gives received bytes to libnghttp2 by `give`, which returns the number of processed ones or an error.
    static func receive(_ session: OpaquePointer?, by give: () -> Int) -> Int {
        let isTold = onField.load(ordering: .relaxed) != 0 && onData.load(ordering: .relaxed) != 0
        // One function of libnghttp2 may call the other.
        guard let session = unsafe session, isTold, !isOff.load(ordering: .relaxed),
            unsafe pthread_getspecific(current) == nil
        else { return give() }
        var content = FrameAllowance.Content()
        let count = unsafe withUnsafeMutablePointer(to: &content) { content in
            unsafe pthread_setspecific(current, content)
            defer { pthread_setspecific(current, nil) }
            return give()
        }
        guard count > 0 else { return count }
        let isAllowed = sessions.withLock { sessions in
            sessions[UInt(bitPattern: session), default: FrameAllowance()].receive(count, content, at: milliseconds)
        }
        return isAllowed ? count : flooded
    }

    /// Counts sent bytes.
    static func sent(_ session: OpaquePointer?, _ count: Int) {
        guard let session = unsafe session, count > 0 else { return }
        sessions.withLock { $0[UInt(bitPattern: session)]?.send(count) }
    }

    /// Forgets a session that is about to end.
    static func forget(_ session: OpaquePointer?) {
        guard let session = unsafe session else { return }
        sessions.withLock { $0[UInt(bitPattern: session)] = nil }
    }

    /// Changes the content of the bytes that the thread is giving to libnghttp2.
    static func note(_ change: (inout FrameAllowance.Content) -> Void) {
        guard let content = unsafe pthread_getspecific(current) else { return }
        unsafe change(&content.assumingMemoryBound(to: FrameAllowance.Content.self).pointee)
    }

    /// Milliseconds of a clock that only advances.
    private static var milliseconds: Int64 {
        var time = timespec()
        unsafe clock_gettime(CLOCK_MONOTONIC_COARSE, &time)
        return Int64(time.tv_sec) &* 1000 &+ Int64(time.tv_nsec) / 1_000_000
    }

    /// NGHTTP2_ERR_FLOODED, which is fatal.
    private static let flooded = -904
}

private typealias Receive = @convention(c) (OpaquePointer?, UnsafeRawPointer?, Int) -> Int
private typealias Delete = @convention(c) (OpaquePointer?) -> Void
private typealias Register = @convention(c) (OpaquePointer?, UnsafeRawPointer?) -> Void
private typealias OnField =
    @convention(c) (
        OpaquePointer?, UnsafeRawPointer?, UnsafeRawPointer?, Int, UnsafeRawPointer?, Int, UInt8,
        UnsafeMutableRawPointer?
    ) -> Int32
private typealias OnData =
    @convention(c) (OpaquePointer?, UInt8, Int32, UnsafeRawPointer?, Int, UnsafeMutableRawPointer?) -> Int32
private typealias OnSend =
    @convention(c) (OpaquePointer?, UnsafeRawPointer?, Int, Int32, UnsafeMutableRawPointer?) -> Int

private let receive = unsafe libraryFunction("nghttp2_session_mem_recv", as: Receive.self)
private let receive2 = unsafe libraryFunction("nghttp2_session_mem_recv2", as: Receive.self)
private let delete = unsafe libraryFunction("nghttp2_session_del", as: Delete.self)
private let registerOnField = unsafe libraryFunction(
    "nghttp2_session_callbacks_set_on_header_callback", as: Register.self)
private let registerOnData = unsafe libraryFunction(
    "nghttp2_session_callbacks_set_on_data_chunk_recv_callback", as: Register.self)
private let registerOnSend = unsafe libraryFunction("nghttp2_session_callbacks_set_send_callback", as: Register.self)
private let registerOnSend2 = unsafe libraryFunction("nghttp2_session_callbacks_set_send_callback2", as: Register.self)

/// NGHTTP2_ERR_CALLBACK_FAILURE and NGHTTP2_ERR_INVALID_STATE, for functions that are missing.
private let callbackFailure = -902
private let invalidState = -519

// MARK: Called by libcurl

/// Processes received bytes.
@c(nghttp2_session_mem_recv)
package func nghttp2SessionMemRecv(_ session: OpaquePointer?, _ bytes: UnsafeRawPointer?, _ count: Int) -> Int {
    guard let receive = unsafe receive else { return invalidState }
    return unsafe FrameGuard.receive(session) { unsafe receive(session, bytes, count) }
}

/// Processes received bytes, since nghttp2 1.61.
@c(nghttp2_session_mem_recv2)
package func nghttp2SessionMemRecv2(_ session: OpaquePointer?, _ bytes: UnsafeRawPointer?, _ count: Int) -> Int {
    guard let receive = unsafe receive2 else { return invalidState }
    return unsafe FrameGuard.receive(session) { unsafe receive(session, bytes, count) }
}

/// Ends a session.
@c(nghttp2_session_del)
package func nghttp2SessionDel(_ session: OpaquePointer?) {
    unsafe FrameGuard.forget(session)
    unsafe delete?(session)
}

/// Registers libcurl's function for fields.
@c(nghttp2_session_callbacks_set_on_header_callback)
package func nghttp2SetOnHeader(_ callbacks: OpaquePointer?, _ function: UnsafeRawPointer?) {
    let own = unsafe unsafeBitCast(onField as OnField, to: UnsafeRawPointer.self)
    unsafe registerOnField?(callbacks, FrameGuard.replace(function, by: own, keptIn: FrameGuard.onField))
}

/// Registers libcurl's function for data.
@c(nghttp2_session_callbacks_set_on_data_chunk_recv_callback)
package func nghttp2SetOnData(_ callbacks: OpaquePointer?, _ function: UnsafeRawPointer?) {
    let own = unsafe unsafeBitCast(onData as OnData, to: UnsafeRawPointer.self)
    unsafe registerOnData?(callbacks, FrameGuard.replace(function, by: own, keptIn: FrameGuard.onData))
}

/// Registers libcurl's function for bytes to be sent.
@c(nghttp2_session_callbacks_set_send_callback)
package func nghttp2SetOnSend(_ callbacks: OpaquePointer?, _ function: UnsafeRawPointer?) {
    let own = unsafe unsafeBitCast(onSend as OnSend, to: UnsafeRawPointer.self)
    unsafe registerOnSend?(callbacks, FrameGuard.replace(function, by: own, keptIn: FrameGuard.onSend))
}

/// Registers libcurl's function for bytes to be sent, since nghttp2 1.61.
@c(nghttp2_session_callbacks_set_send_callback2)
package func nghttp2SetOnSend2(_ callbacks: OpaquePointer?, _ function: UnsafeRawPointer?) {
    let own = unsafe unsafeBitCast(onSend as OnSend, to: UnsafeRawPointer.self)
    unsafe registerOnSend2?(callbacks, FrameGuard.replace(function, by: own, keptIn: FrameGuard.onSend))
}

// MARK: Called by libnghttp2

@c private func onField(
    _ session: OpaquePointer?, _ frame: UnsafeRawPointer?, _ name: UnsafeRawPointer?, _ nameCount: Int,
    _ value: UnsafeRawPointer?, _ valueCount: Int, _ flags: UInt8, _ data: UnsafeMutableRawPointer?
) -> Int32 {
    FrameGuard.note { content in
        content.addField(nameCount)
        content.addField(valueCount)
    }
    let function = unsafe UnsafeRawPointer(bitPattern: FrameGuard.onField.load(ordering: .relaxed))
    guard let function = unsafe function else { return Int32(truncatingIfNeeded: callbackFailure) }
    return unsafe unsafeBitCast(function, to: OnField.self)(
        session, frame, name, nameCount, value, valueCount, flags, data)
}

@c private func onData(
    _ session: OpaquePointer?, _ flags: UInt8, _ stream: Int32, _ bytes: UnsafeRawPointer?, _ count: Int,
    _ data: UnsafeMutableRawPointer?
) -> Int32 {
    FrameGuard.note { $0.addData(count) }
    let function = unsafe UnsafeRawPointer(bitPattern: FrameGuard.onData.load(ordering: .relaxed))
    guard let function = unsafe function else { return Int32(truncatingIfNeeded: callbackFailure) }
    return unsafe unsafeBitCast(function, to: OnData.self)(session, flags, stream, bytes, count, data)
}

@c private func onSend(
    _ session: OpaquePointer?, _ bytes: UnsafeRawPointer?, _ count: Int, _ flags: Int32,
    _ data: UnsafeMutableRawPointer?
) -> Int {
    let function = unsafe UnsafeRawPointer(bitPattern: FrameGuard.onSend.load(ordering: .relaxed))
    guard let function = unsafe function else { return callbackFailure }
    let sent = unsafe unsafeBitCast(function, to: OnSend.self)(session, bytes, count, flags, data)
    unsafe FrameGuard.sent(session, sent)
    return sent
}
