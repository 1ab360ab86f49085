// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import CCurl

extension EasyHandle {
    /// `CURLAUTH_NTLM` for `httpAuth`: a macro that Swift does not see.
    package static var ntlm: Int { 1 << 3 }

    /// Sets an option of 0 or 1.
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

    /// Sets a time, rounded up to the millisecond; negative counts as zero.
    package func set(_ option: EasyOption<Duration>, _ value: Duration) throws(CurlError) {
        try unsafe CurlError.check(ccurl_set_long(easy, option.id, milliseconds(value)))
    }

    /// Sets a string. Throws `badFunctionArgument` if it holds a NUL, which would cut it short.
    package func set(_ option: EasyOption<String>, _ value: String) throws(CurlError) {
        var value = value
        value.makeContiguousUTF8()
        try set(option, bytes: value.utf8.span)
    }

    /// Takes a string back to libcurl's default.
    package func clear(_ option: EasyOption<String>) throws(CurlError) {
        try unsafe CurlError.check(ccurl_set_string(easy, option.id, nil))
    }
}

/// libcurl keeps milliseconds in 32 bits on some paths; a limit of 24 days is none.
private func milliseconds(_ value: Duration) -> Int {
    let (seconds, attoseconds) = value.components
    guard seconds >= 0, attoseconds >= 0 else { return 0 }
    guard seconds < Int64(Int32.max) / 1000 else { return Int(Int32.max) }
    return Int(seconds) * 1000 + Int((attoseconds + 999_999_999_999_999) / 1_000_000_000_000_000)
}
