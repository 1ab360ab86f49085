// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Basics
internal import CCurl
internal import Glibc

/// Reusable handle for one transfer at a time, with options that persist between transfers.
///
/// A handle serves thousands of transfers, each of which sets only what differs, and belongs to one thread. Defaults of
/// the environment and of libcurl are off: no proxy and no `.netrc` from the environment, no redirects, no cookies,
/// only `http` and `https`, no HTTP/0.9, and the path is sent unchanged.
@safe
package final class EasyHandle {
    private(set) var easy: OpaquePointer
    /// True if the handle has already done a transfer.
    private var isUsed = false
    let box = EasyBox()
    /// True if the handle only connects, and stays in the multi handle afterwards; see `connectOnly`.
    var keepsConnection = false
    /// Registry whose socket callbacks are installed.
    private(set) var registry: SocketRegistry?
    private var headers: HeaderList?
    private var headersVersion: UInt64 = 0
    private let errorBuffer: UnsafeMutablePointer<CChar>
    /// URL set by `setAddress`.
    private var address: OpaquePointer?
    /// Blobs that options point to, by option number.
    private var blobs: [UInt32: Blob] = [:]

    /// Throws `failedInit` if libcurl is unusable, or the error of an option that libcurl lacks.
    package init() throws(CurlError) {
        if let error = CurlLibrary.status { throw error }
        guard let easy = unsafe curl_easy_init() else { throw .failedInit }
        unsafe self.easy = easy
        unsafe errorBuffer = .allocate(capacity: Int(CURL_ERROR_SIZE))
        unsafe errorBuffer.initialize(repeating: 0, count: Int(CURL_ERROR_SIZE))
        unsafe ccurl_set_pointer(easy, CURLOPT_ERRORBUFFER, errorBuffer)
        unsafe box.install(in: easy)
        try setDefaults()
    }

    deinit {
        // Keeps the box, the error buffer and the registry until here: libcurl may use them until this call returns.
        unsafe curl_easy_cleanup(easy)
        unsafe curl_url_cleanup(address)
        unsafe errorBuffer.deallocate()
    }

    /// True if the handle is in a multi handle, and libcurl owns its options.
    package var isActive: Bool { box.position >= 0 }

    /// Resumes a transfer that the delegate paused, in both directions; may call the delegate.
    package func unpause() -> CurlError? {
        unsafe CurlError(code: curl_easy_pause(easy, CURLPAUSE_CONT))
    }

    /// Pauses receiving, as the delegate could.
    package func pauseReceiving() { unsafe curl_easy_pause(easy, CURLPAUSE_RECV) }

    /// Error buffer: details of the last failure, or empty. May name hosts and files.
    package var errorText: String {
        unsafe String(cString: errorBuffer)
    }

    // MARK: For the multi handle

    /// Prepares the handle for a transfer whose sockets `registry` tracks.
    func begin(delegate: any TransferDelegate, registry: SocketRegistry) throws(CurlError) {
        // libcurl before 8.7 also keeps the state that trailers were sent, and would write before the start of its
        // buffer.
        if isUsed, Self.usedOnesAreUnsafe || box.trailers.areSet { try renew() }
        isUsed = true
        if self.registry !== registry {
            self.registry = registry
            try unsafe CurlError.check(registry.install(in: easy))
        }
        try refreshHeaders()
        unsafe errorBuffer[0] = 0
        headers?.users += 1
        box.delegate = delegate
        box.attempts = 0
        box.wasConnected = false
        forgetClosure()
        box.socket = -1
    }

    /// Ends the transfer, or cancels its preparation.
    func end() {
        headers?.users -= 1
        box.delegate = nil
    }

    /// True if libcurl reuses freed memory of a handle's former transfer (before 8.1.0, curl #11101).
    ///
    /// libcurl keeps the last field line of a transfer after freeing it. A server whose next response begins with a
    /// folded line has the freed memory read, written and freed again, and may choose its content. No libcurl function
    /// clears that state of a handle.
    private static let usedOnesAreUnsafe = CurlFeatures.installed.versionNumber < 0x08_01_00

    /// Replaces the handle by a copy that has only the options.
    private func renew() throws(CurlError) {
        guard let copy = unsafe curl_easy_duphandle(easy) else { throw .outOfMemory }
        unsafe curl_easy_cleanup(easy)
        unsafe easy = copy
        guard box.trailers.areSet else { return }
        box.trailers.removeAll()
        try unsafe CurlError.check(ccurl_set_trailer_function(easy, nil))
    }

    // MARK: Lists and strings

    /// Uses `list` for later transfers; it may be changed between them without being set again.
    package func set(_ option: EasyOption<HeaderList>, _ list: HeaderList?) throws(CurlError) {
        precondition(!isActive, "fields set during a transfer")
        headers = list
        headersVersion = 0
        if list == nil { try unsafe CurlError.check(ccurl_set_list(easy, option.id, nil)) }
    }

    private func refreshHeaders() throws(CurlError) {
        guard let headers, headers.version != headersVersion else { return }
        try unsafe CurlError.check(ccurl_set_list(easy, CURLOPT_HTTPHEADER, headers.sealed()))
        headersVersion = headers.version
    }

    /// Sets bytes, which the handle retains, or resets the option to libcurl's default.
    package func set(_ option: EasyOption<Blob>, _ blob: Blob?) throws(CurlError) {
        precondition(!isActive, "bytes set during a transfer")
        try unsafe CurlError.check(ccurl_set_blob(easy, option.id, blob?.start, blob?.count ?? 0))
        // The former blob is released after libcurl no longer points to it.
        blobs[option.id.rawValue] = blob
    }

    /// Sets a string from bytes, without creating a `String`.
    ///
    /// Throws `badFunctionArgument` if a NUL would truncate the value.
    package func set(_ option: EasyOption<String>, bytes: Span<UInt8>) throws(CurlError) {
        let code = unsafe withUnsafeTemporaryAllocation(byteCount: bytes.count + 1, alignment: 1) { copy in
            unsafe bytes.withUnsafeBytes { bytes in unsafe copy.copyMemory(from: bytes) }
            unsafe copy[bytes.count] = 0
            guard let text = copy.baseAddress, unsafe strlen(text) == bytes.count else {
                return CURLE_BAD_FUNCTION_ARGUMENT
            }
            defer { unsafe explicit_bzero(text, bytes.count) }  // May have been a secret.
            return unsafe ccurl_set_string(easy, option.id, text.assumingMemoryBound(to: CChar.self))
        }
        try CurlError.check(code)
    }

    /// Sets the URL of later transfers, parsed once, for a handle with many requests to one server.
    ///
    /// With the option `url`, libcurl parses and reassembles the URL for every transfer, which is a tenth of its work.
    /// Throws `urlMalformed` for an invalid URL.
    package func setAddress(_ text: String) throws(CurlError) {
        precondition(!isActive, "address set during a transfer")
        guard let parsed = unsafe curl_url() else { throw .outOfMemory }
        let isGood = unsafe text.withCString { unsafe curl_url_set(parsed, CURLUPART_URL, $0, 0) == CURLUE_OK }
        guard isGood, unsafe ccurl_set_pointer(easy, CURLOPT_CURLU, UnsafeMutableRawPointer(parsed)) == CURLE_OK else {
            unsafe curl_url_cleanup(parsed)
            throw .urlMalformed
        }
        unsafe curl_url_cleanup(address)
        unsafe address = parsed
    }

    private func setDefaults() throws(CurlError) {
        try set(.noSignal, true)
        try set(.noProgress, true)
        try set(.protocols, "http,https")
        try set(.redirectProtocols, "http,https")
        try set(.followLocation, false)
        try set(.http09, false)
        try set(.pathAsIs, true)
        try set(.disallowUsername, true)
        try set(.suppressConnectHeaders, true)
        try set(.tcpNoDelay, true)
        try set(.proxy, "")
        // Overrides a configured proxy too.
        try set(.noProxy, "")
    }
}

extension EasyHandle {
    /// `CURLAUTH_NTLM` for `httpAuth`, a macro that Swift does not import.
    package static var ntlm: Int { 1 << 3 }

    /// Sets a Boolean option.
    package func set(_ option: EasyOption<Bool>, _ value: Bool) throws(CurlError) {
        try unsafe CurlError.check(ccurl_set_long(easy, option.id, value ? 1 : 0))
    }

    /// Sets a number.
    package func set(_ option: EasyOption<Int>, _ value: Int) throws(CurlError) {
        try unsafe CurlError.check(ccurl_set_long(easy, option.id, value))
    }

    /// Sets a size.
    package func set(_ option: EasyOption<Int64>, _ value: Int64) throws(CurlError) {
        try unsafe CurlError.check(ccurl_set_offset(easy, option.id, curl_off_t(value)))
    }

    /// Sets a duration, rounded up to milliseconds; a negative one counts as zero.
    package func set(_ option: EasyOption<Duration>, _ value: Duration) throws(CurlError) {
        try unsafe CurlError.check(ccurl_set_long(easy, option.id, milliseconds(value)))
    }

    /// Sets a string; throws `badFunctionArgument` if a NUL would truncate the string.
    package func set(_ option: EasyOption<String>, _ value: String) throws(CurlError) {
        var value = value
        value.makeContiguousUTF8()
        try set(option, bytes: value.utf8.span)
    }

    /// Resets a string to libcurl's default.
    package func clear(_ option: EasyOption<String>) throws(CurlError) {
        try unsafe CurlError.check(ccurl_set_string(easy, option.id, nil))
    }
}

/// libcurl stores milliseconds in 32 bits on some paths; 24 days are as good as no limit.
private func milliseconds(_ value: Duration) -> Int {
    Int(min(value.millisecondsRoundedUp, Int64(Int32.max)))
}

/// The library as a whole.
enum CurlLibrary {
    /// Result of `curl_global_init`.
    ///
    /// Swift runs the initializer exactly once, on the first thread that calls; a libcurl that was not built
    /// thread-safe needs this.
    static let status = CurlError(code: curl_global_init(Int(CURL_GLOBAL_DEFAULT)))
}

/// The request line, which libcurl sends as it was set: a line end in it would begin another request.
extension EasyHandle {
    /// Sets the request target to send instead of the URL's path and query.
    ///
    /// Throws `urlMalformed` unless the bytes are a path with an optional query, or `*` (RFC 9112 §3.2).
    package func setTarget(_ target: Span<UInt8>) throws(CurlError) {
        guard target.isRequestTarget else { throw .urlMalformed }
        try set(.requestTarget, bytes: target)
    }

    /// Sets the request target to send instead of the URL's path and query, as `setTarget(_:)` does.
    package func setTarget(_ target: String) throws(CurlError) {
        var target = target
        target.makeContiguousUTF8()
        try setTarget(target.utf8.span)
    }

    /// Sets the method, if no other option implies it. Throws `badFunctionArgument` unless it is a `token` (RFC 9110
    /// §9.1).
    package func setMethod(_ method: String) throws(CurlError) {
        guard method.utf8.isToken else { throw .badFunctionArgument }
        try set(.customRequest, method)
    }

    /// Resets the method to the one that other options imply.
    package func clearMethod() throws(CurlError) { try clear(.customRequest) }
}
