// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import CCurl

/// Trailer fields of a request (RFC 9110 §6.5) until libcurl takes them.
///
/// libcurl frees the list that it receives, so the list is allocated by libcurl.
@safe
struct Trailers: ~Copyable {
    private var list: UnsafeMutablePointer<curl_slist>?
    /// True if trailers were announced to libcurl for the current transfer.
    private(set) var areSet = false

    deinit { unsafe curl_slist_free_all(list) }

    /// Adds a line; throws `badFunctionArgument` for bytes that could end the line, or `outOfMemory`.
    mutating func append(name: Span<UInt8>, value: Span<UInt8>) throws(CurlError) {
        var line: [UInt8] = []
        line.reserveCapacity(name.count + value.count + 3)
        for index in name.indices { line.append(name[index]) }
        // libcurl drops a line without the space.
        line.append(UInt8(ascii: ":"))
        line.append(UInt8(ascii: " "))
        for index in value.indices { line.append(value[index]) }
        guard !name.isEmpty, !line.contains(where: { $0 == 0 || $0 == 0x0A || $0 == 0x0D }) else {
            throw .badFunctionArgument
        }
        line.append(0)
        let longer = unsafe line.withUnsafeBufferPointer { line in
            unsafe line.withMemoryRebound(to: CChar.self) { line in unsafe curl_slist_append(list, line.baseAddress) }
        }
        guard let longer = unsafe longer else { throw .outOfMemory }
        unsafe list = longer
    }

    /// Makes libcurl request the trailers.
    mutating func set(in easy: OpaquePointer, data: UnsafeMutableRawPointer) throws(CurlError) {
        areSet = true
        try unsafe CurlError.check(ccurl_set_pointer(easy, CURLOPT_TRAILERDATA, data))
        try unsafe CurlError.check(ccurl_set_trailer_function(easy, trailerCallback))
    }

    /// Removes all trailers.
    mutating func removeAll() {
        unsafe curl_slist_free_all(list)
        unsafe list = nil
        areSet = false
    }

    fileprivate mutating func take() -> UnsafeMutablePointer<curl_slist>? {
        defer { unsafe list = nil }
        return unsafe list
    }
}

extension EasyHandle {
    /// Adds a field after the last chunk of the request's body, for the current transfer only.
    ///
    /// Must be called before or while the delegate reports the end of the body. Has no effect if the body is not
    /// chunked.
    package func appendTrailer(name: Span<UInt8>, value: Span<UInt8>) throws(CurlError) {
        try box.trailers.append(name: name, value: value)
        if !box.trailers.areSet { try unsafe box.trailers.set(in: easy, data: box.opaque) }
    }
}

@c private func trailerCallback(
    _ list: UnsafeMutablePointer<UnsafeMutablePointer<curl_slist>?>, _ data: UnsafeMutableRawPointer?
) -> Int32 {
    guard let box = unsafe EasyBox.from(data) else { return CURL_TRAILERFUNC_ABORT }
    unsafe list.pointee = box.trailers.take()
    return CURL_TRAILERFUNC_OK
}
