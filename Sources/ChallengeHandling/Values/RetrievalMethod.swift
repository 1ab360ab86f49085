// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

package import HTTPTypes

extension HTTPRequest.Method {
    /// True for GET and HEAD, which ask for a page and have no effect (RFC 9110 §9.3.1, §9.3.2).
    package var isRetrieval: Bool { self == .get || self == .head }
}
