// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

package import HTTPTypes

extension HTTPRequest.Method {
    /// True for GET and HEAD, which ask for a page and have no effect (RFC 9110 §9.3.1, §9.3.2).
    package var isRetrieval: Bool { self == .get || self == .head }
}

/// Status of a response that does not judge its request. It says nothing about a credential or a session.
package enum InconclusiveStatus {
    /// Returns true for 5xx, for 429 (RFC 6585 §4), and for 408, as the request did not come whole (RFC 9110 §15.5.9).
    package static func contains(_ status: Int) -> Bool { status >= 500 || status == 408 || status == 429 }

    /// Returns true for those and for 400 (RFC 9110 §15.5.1): a server that does not understand a form has not judged
    /// its values.
    static func containsForForm(_ status: Int) -> Bool { status == 400 || contains(status) }
}
