// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import CCurl
internal import Glibc

/// One transfer at a time, and the options that it keeps from one to the next.
///
/// A handle is made once and used for thousands of transfers; each time only what differs is set. It belongs to the
/// thread that uses it. It is set up so that nothing of the environment or of libcurl's conveniences gets in: no proxy
/// and no `.netrc` from the environment, no redirect followed, no cookie kept, `http` and `https` only, no HTTP/0.9,
/// the path sent as it is.
@safe
package final class EasyHandle {
    private(set) var easy: OpaquePointer
    /// True if it has done a transfer, as it is.
    private var isUsed = false
    let box = EasyBox()
    /// True if it only connects, and keeps its place in the multi handle when that is done; see `connectOnly`.
    var keepsConnection = false
    /// The ledger whose socket callbacks are installed.
    private(set) var ledger: SocketLedger?
    private var headers: HeaderList?
    private var headersVersion: UInt64 = 0
    private let errorBuffer: UnsafeMutablePointer<CChar>
    /// The address of `setAddress`.
    private var address: OpaquePointer?
    /// Those that options point to, by their numbers.
    private var blobs: [UInt32: Blob] = [:]

    /// Throws `failedInit` where libcurl cannot be used, or the error of an option that the installed libcurl lacks.
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
        // The box, the error buffer and the ledger are still there: libcurl may use them until it returns.
        unsafe curl_easy_cleanup(easy)
        unsafe curl_url_cleanup(address)
        unsafe errorBuffer.deallocate()
    }

    /// True if the handle is in a multi handle: its options are libcurl's until the completion is handed out.
    package var isActive: Bool { box.position >= 0 }

    /// Goes on with a transfer that the delegate paused, in both directions. libcurl may call the delegate from within.
    package func unpause() -> CurlError? {
        unsafe CurlError(code: curl_easy_pause(easy, CURLPAUSE_CONT))
    }

    /// Pauses the transfer under way as the delegate could, in the receiving direction.
    package func pauseReceiving() { unsafe curl_easy_pause(easy, CURLPAUSE_RECV) }

    /// The error buffer: details of the last failure, or nothing. It may name hosts and files.
    package var errorText: String {
        unsafe String(cString: errorBuffer)
    }

    // MARK: For the multi handle

    /// Readies the handle for a transfer whose sockets `ledger` keeps account of.
    func begin(delegate: any TransferDelegate, ledger: SocketLedger) throws(CurlError) {
        // libcurl before 8.7 does not forget either that trailers were sent, and would write in front of its buffer.
        if isUsed, Self.usedOnesAreUnsafe || box.trailers.areSet { try renew() }
        isUsed = true
        if self.ledger !== ledger {
            self.ledger = ledger
            try unsafe CurlError.check(ledger.install(in: easy))
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

    /// The transfer is over, or did not come about.
    func end() {
        headers?.users -= 1
        box.delegate = nil
    }

    /// Before 8.1.0 libcurl remembers the last field line of one transfer in the next, where it has freed it. A server whose
    /// answer begins with a folded line has it read, written and freed once more, and may choose what stands there (curl
    /// #11101). None of its functions clears that memory of a handle.
    private static let usedOnesAreUnsafe = CurlFeatures.installed.versionNumber < 0x08_01_00

    /// Goes on with a copy that remembers nothing but the options.
    private func renew() throws(CurlError) {
        guard let copy = unsafe curl_easy_duphandle(easy) else { throw .outOfMemory }
        unsafe curl_easy_cleanup(easy)
        unsafe easy = copy
        guard box.trailers.areSet else { return }
        box.trailers.removeAll()
        try unsafe CurlError.check(ccurl_set_trailer_function(easy, nil))
    }

    // MARK: Lists and strings

    /// Uses `list` for the transfers to come. It may be changed between them without being set again.
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

    /// Sets bytes, which are kept, or takes the option back to libcurl's default.
    package func set(_ option: EasyOption<Blob>, _ blob: Blob?) throws(CurlError) {
        precondition(!isActive, "bytes set during a transfer")
        try unsafe CurlError.check(ccurl_set_blob(easy, option.id, blob?.start, blob?.count ?? 0))
        // The last one is let go of when libcurl no longer points to it.
        blobs[option.id.rawValue] = blob
    }

    /// Sets a string from bytes without making a `String`. Throws `badFunctionArgument` if there is a NUL among them,
    /// which would cut the value short.
    package func set(_ option: EasyOption<String>, bytes: Span<UInt8>) throws(CurlError) {
        let code = unsafe withUnsafeTemporaryAllocation(byteCount: bytes.count + 1, alignment: 1) { copy in
            unsafe bytes.withUnsafeBytes { bytes in unsafe copy.copyMemory(from: bytes) }
            unsafe copy[bytes.count] = 0
            guard let text = copy.baseAddress, unsafe strlen(text) == bytes.count else {
                return CURLE_BAD_FUNCTION_ARGUMENT
            }
            defer { unsafe explicit_bzero(text, bytes.count) }  // It may have been a secret.
            return unsafe ccurl_set_string(easy, option.id, text.assumingMemoryBound(to: CChar.self))
        }
        try CurlError.check(code)
    }

    /// Sets where the transfers to come go, like the option `url`, for a handle that does many to one server: the address
    /// is taken apart here, once. With `url` libcurl does it at every transfer, and puts it together again, which is a
    /// tenth of its work. Throws `urlMalformed` for what is no address.
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
        // It has the last word on a proxy that is set, too.
        try set(.noProxy, "")
    }
}
