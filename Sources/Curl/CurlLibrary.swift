// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import CCurl

/// The library as a whole.
enum CurlLibrary {
    /// What `curl_global_init` said. Swift runs the initialiser once, whichever thread comes first; libcurl needs that
    /// where it was not built thread-safe.
    static let status = CurlError(code: curl_global_init(Int(CURL_GLOBAL_DEFAULT)))
}
