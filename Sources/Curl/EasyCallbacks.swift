// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import CCurl

/// User data of libcurl's callbacks.
///
/// A separate object, because libcurl may call back while the handle is being cleaned up and can no longer be retained.
@safe
final class EasyBox {
    /// Delegate of the current transfer, set from `MultiHandle.add` until the completion is delivered.
    var delegate: (any TransferDelegate)?
    /// Index among the multi handle's members; -1 if none.
    var position = -1
    /// Descriptor that libcurl last watched for the current transfer; -1 if none.
    var socket: Int32 = -1
    /// Count of how often this descriptor number had been opened.
    var opening: UInt64 = 0
    /// Number of times the request was sent since the last response line.
    var attempts = 0
    /// Trailer fields of the request.
    var trailers = Trailers()
    /// State of the current TLS connection, and the handle if the end is being observed.
    var closure = TLSClosure.unknown
    var watched: OpaquePointer?
    /// True if the current transfer got a connection.
    var wasConnected = false

    /// Returns the box of a callback's user data.
    static func from(_ data: UnsafeMutableRawPointer?) -> EasyBox? {
        guard let data = unsafe data else { return nil }
        return unsafe Unmanaged<EasyBox>.fromOpaque(data).takeUnretainedValue()
    }

    /// Calls `body` with the box of a callback's user data, which the handle keeps alive.
    @inline(__always)
    static func with<Result>(
        _ data: UnsafeMutableRawPointer?, orElse failure: Result, _ body: (EasyBox) -> Result
    ) -> Result {
        guard let data = unsafe data else { return failure }
        return unsafe Unmanaged<EasyBox>.fromOpaque(data)._withUnsafeGuaranteedRef(body)
    }

    var opaque: UnsafeMutableRawPointer {
        unsafe Unmanaged.passUnretained(self).toOpaque()
    }

    /// Installs the callbacks in `easy`, with this box as user data.
    func install(in easy: OpaquePointer) {
        unsafe ccurl_set_bytes_function(easy, CURLOPT_HEADERFUNCTION, headerCallback)
        unsafe ccurl_set_pointer(easy, CURLOPT_HEADERDATA, opaque)
        unsafe ccurl_set_bytes_function(easy, CURLOPT_WRITEFUNCTION, bodyCallback)
        unsafe ccurl_set_pointer(easy, CURLOPT_WRITEDATA, opaque)
        unsafe ccurl_set_bytes_function(easy, CURLOPT_READFUNCTION, supplyCallback)
        unsafe ccurl_set_pointer(easy, CURLOPT_READDATA, opaque)
        unsafe ccurl_set_seek_function(easy, seekCallback)
        unsafe ccurl_set_pointer(easy, CURLOPT_SEEKDATA, opaque)
        unsafe ccurl_set_prereq_function(easy, prereqCallback)
        unsafe ccurl_set_pointer(easy, CURLOPT_PREREQDATA, opaque)
        unsafe ccurl_set_pointer(easy, CURLOPT_PRIVATE, opaque)
    }

    fileprivate func received(headerLine: UnsafeRawBufferPointer) -> Bool {
        attempts = 0
        guard let delegate else { return false }
        return unsafe delegate.transferReceived(headerLine: headerLine)
    }

    fileprivate func received(body: UnsafeRawBufferPointer) -> Int {
        switch unsafe delegate?.transferReceived(body: body) {
        case .consumed: return body.count
        case .pause: return Int(CURL_WRITEFUNC_PAUSE)
        case .abort, nil: return Int(CURL_WRITEFUNC_ERROR)
        }
    }

    fileprivate func supply(_ buffer: UnsafeMutableRawBufferPointer) -> Int {
        switch unsafe delegate?.transferNeedsBody(buffer) {
        case .bytes(let count) where count > 0 && count <= buffer.count: return count
        case .end: return 0
        case .pause: return Int(CURL_READFUNC_PAUSE)
        case .abort, .bytes, nil: return Int(CURL_READFUNC_ABORT)
        }
    }

    fileprivate func seek(to offset: Int64, origin: Int32) -> Int32 {
        // libcurl requests absolute positions only (SEEK_SET, 0).
        guard origin == 0, let delegate, delegate.transferRewinds(to: offset) else { return CURL_SEEKFUNC_FAIL }
        return CURL_SEEKFUNC_OK
    }

    fileprivate func willSend() -> Int32 {
        attempts += 1
        // libcurl 7.88 to 8.6 writes before the start of its buffer when it sends chunks on a handle that has sent
        // trailers.
        guard attempts == 1 || !trailers.areSet else { return CURL_PREREQFUNC_ABORT }
        wasConnected = true
        guard let delegate, delegate.transferWillSend(attempt: attempts) else { return CURL_PREREQFUNC_ABORT }
        return CURL_PREREQFUNC_OK
    }
}

@c private func headerCallback(
    _ start: UnsafeMutablePointer<CChar>?, _ size: Int, _ count: Int, _ data: UnsafeMutableRawPointer?
) -> Int {
    let line = unsafe UnsafeRawBufferPointer(start: start, count: size &* count)
    // Any count other than the line's length means an error to libcurl.
    return unsafe EasyBox.with(data, orElse: false) { unsafe $0.received(headerLine: line) }
        ? line.count : line.count &+ 1
}

@c private func bodyCallback(
    _ start: UnsafeMutablePointer<CChar>?, _ size: Int, _ count: Int, _ data: UnsafeMutableRawPointer?
) -> Int {
    let piece = unsafe UnsafeRawBufferPointer(start: start, count: size &* count)
    return unsafe EasyBox.with(data, orElse: -1) { unsafe $0.received(body: piece) }
}

@c private func supplyCallback(
    _ start: UnsafeMutablePointer<CChar>?, _ size: Int, _ count: Int, _ data: UnsafeMutableRawPointer?
) -> Int {
    let buffer = unsafe UnsafeMutableRawBufferPointer(start: start, count: size &* count)
    return unsafe EasyBox.from(data)?.supply(buffer) ?? Int(CURL_READFUNC_ABORT)
}

@c private func seekCallback(_ data: UnsafeMutableRawPointer?, _ offset: curl_off_t, _ origin: Int32) -> Int32 {
    unsafe EasyBox.from(data)?.seek(to: Int64(offset), origin: origin) ?? CURL_SEEKFUNC_FAIL
}

@c private func prereqCallback(
    _ data: UnsafeMutableRawPointer?, _ peer: UnsafeMutablePointer<CChar>?, _ local: UnsafeMutablePointer<CChar>?,
    _ peerPort: Int32, _ localPort: Int32
) -> Int32 {
    unsafe EasyBox.with(data, orElse: CURL_PREREQFUNC_ABORT) { $0.willSend() }
}
