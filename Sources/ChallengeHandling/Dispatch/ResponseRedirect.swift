// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import FieldBytes
internal import HTTPTypes

/// The redirect of a response (RFC 9110 §15.4), read as browsers read it.
package enum ResponseRedirect: Sendable, Equatable {
    /// No redirect that a client follows.
    case none
    /// A redirect to this address.
    case to(WebURL)
    /// A redirect to an address that cannot be used.
    case unreadable(AddressFault)

    /// Reads the redirect of `response`. The bytes of `Location` are read as they came.
    package init(of response: ExaminedResponse) {
        guard [301, 302, 303, 307, 308].contains(response.status) else {
            self = .none
            return
        }
        self.init(locationsOf: response)
    }

    /// Reads `Location` whatever the status. Of several fields, none is better than another.
    init(locationsOf response: ExaminedResponse) {
        let locations = response.fields.bytes(of: .location)
        guard let first = locations.first else {
            self = .none
            return
        }
        guard locations.allSatisfy({ $0 == first }) else {
            self = .unreadable(AddressFault("is given twice, with different values"))
            return
        }
        do throws(AddressFault) {
            self = .to(try WebURL(reading: first, at: response.url))
        } catch {
            self = .unreadable(error)
        }
    }

    /// The address that it leads to.
    package var target: WebURL? { if case .to(let target) = self { target } else { nil } }
}

extension ExaminedResponse {
    /// The address that a redirect of the response leads to; `nil` for no redirect, or an unusable address.
    package var redirectTarget: WebURL? { ResponseRedirect(of: self).target }
}
