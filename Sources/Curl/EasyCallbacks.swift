// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import CCurl

/// What libcurl's callbacks find as their user data. An object of its own, for libcurl may call back while the handle
/// is being cleaned up, when the handle itself can no longer be retained.
@safe
final class EasyBox {
    /// Whom the transfer under way reports to. There is one from `MultiHandle.add` until the completion is handed out.
    var delegate: (any TransferDelegate)?
    /// Where the handle stands among its multi handle's members; -1: nowhere.
    var position = -1
    /// The descriptor that libcurl last watched for the transfer under way; -1: none yet.
    var socket: Int32 = -1
    /// Which opening of that number it was.
    var opening: UInt64 = 0
    /// How often the request has been sent since the last line of an answer.
    var attempts = 0
    /// The trailer fields of the request.
    var trailers = Trailers()
    /// How the connection of the transfer under way ended, and the handle where that is watched.
    var closure = TLSClosure.unknown
    var watched: OpaquePointer?
    /// True if there was a connection for the transfer under way.
    var wasConnected = false

    /// The box behind a callback's user data.
    static func from(_ data: UnsafeMutableRawPointer?) -> EasyBox? {
        guard let data = unsafe data else { return nil }
        return unsafe Unmanaged<EasyBox>.fromOpaque(data).takeUnretainedValue()
    }

    /// Calls `body` with the box behind a callback's user data, which the handle keeps alive meanwhile.
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

    /// Connects the callbacks of `easy` to this box.
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
        // libcurl asks for absolute positions only (SEEK_SET, 0).
        guard origin == 0, let delegate, delegate.transferRewinds(to: offset) else { return CURL_SEEKFUNC_FAIL }
        return CURL_SEEKFUNC_OK
    }

    fileprivate func willSend() -> Int32 {
        attempts += 1
        // libcurl 7.88 to 8.6 writes in front of its buffer when it sends chunks on a handle that has sent trailers.
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
    // Any other count than the line's means an error to libcurl.
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
