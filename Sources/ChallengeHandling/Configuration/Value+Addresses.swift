// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

package import HTTPTypes
package import SettingsReading

/// Address that is absolute, or relative to the upstream or to its page.
package enum AddressReference: Sendable, Hashable {
    /// With a scheme and a host.
    case absolute(WebURL)
    /// A path from its slash, or for a gateway's form a reference relative to the page (RFC 3986 §5).
    case path(String)

    /// Text in the configuration.
    var text: String {
        switch self {
        case .absolute(let url): "\(url)"
        case .path(let path): path
        }
    }

    func resolved(at base: WebURL) -> WebURL? {
        switch self {
        case .absolute(let url): url
        case .path(let path): base.resolving(path)
        }
    }

    /// Origin, if it is written.
    var origin: Origin? {
        if case .absolute(let url) = self { url.origin } else { nil }
    }
}

extension Value {
    /// Returns an absolute http or https address, without a query unless `allowsQuery`.
    package func webURL(allowsQuery: Bool = true) -> WebURL? {
        guard let text = word() else { return nil }
        guard let url = WebURL(text) else {
            let authority = text.split(separator: "/", omittingEmptySubsequences: false).dropFirst(2).first ?? ""
            report(
                authority.contains("@")
                    ? "an address must not contain a user name or a password; keep them in a credential source"
                    : "is not an address (use http:// or https://, a host, and optionally a port and a path)")
            return nil
        }
        guard allowsQuery || url.query == nil else {
            report("must not have a query: the paths of requests are appended to it")
            return nil
        }
        return url
    }

    /// Returns an absolute address, or a path from its slash.
    package func addressReference() -> AddressReference? {
        guard let text = word() else { return nil }
        if text.hasPrefix("/"), !text.hasPrefix("//") {
            guard WebURL("http://localhost\(text)") != nil else {
                report("contains a character that is not allowed in an address; percent-encode it")
                return nil
            }
            return .path(text)
        }
        guard text.contains("://") else {
            report(
                "is neither a path that begins with /, such as /login, nor an address with http:// or https:// and a host"
            )
            return nil
        }
        return webURL().map(AddressReference.absolute)
    }

    /// Returns path and query of an address at the upstream's own origin.
    package func originPath() -> String? {
        switch addressReference() {
        case .path(let path)?: return path
        case .absolute?:
            report("must be a path that begins with /, such as /whoami: it is requested at the upstream's own origin")
            return nil
        case nil: return nil
        }
    }

    /// Returns a location pattern.
    package func locationPattern() -> LocationPattern? {
        guard let text = word() else { return nil }
        do {
            return try LocationPattern(text)
        } catch {
            report("is not a location pattern: \(error.reason)")
            return nil
        }
    }

    /// Returns a method. Methods are case-sensitive (RFC 9110 §9.1).
    package func method() -> HTTPRequest.Method? {
        guard let text = word() else { return nil }
        let known = ["CONNECT", "DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT", "TRACE"]
        let isMisspelt = !known.contains(text) && known.contains(text.uppercased())
        guard !isMisspelt, let method = HTTPRequest.Method(text) else {
            report("\"\(text)\" is not a method\(didYouMean(text, among: known))")
            return nil
        }
        return method
    }

    /// Returns the name of a field that a configuration may set.
    package func fieldName(_ text: String) -> HTTPField.Name? {
        if let fault = InjectedTemplate.fault(ofName: text) {
            report("\"\(text)\" \(fault)")
            return nil
        }
        return HTTPField.Name(text)
    }
}

extension ValueForm where Content == WebURL {
    /// An absolute address.
    package static let address = ValueForm("address", plural: "addresses") { $0.webURL() }
    /// An absolute address without a query.
    package static let addressWithoutQuery = ValueForm("http or https address") { $0.webURL(allowsQuery: false) }
}

extension ValueForm where Content == AddressReference {
    /// An absolute address, or a path.
    package static let addressOrPath = ValueForm("address or path") { $0.addressReference() }
}

extension ValueForm where Content == String {
    /// A path at the upstream's own origin.
    package static let originPath = ValueForm("path at the upstream") { $0.originPath() }
}

extension ValueForm where Content == LocationPattern {
    /// A location pattern.
    package static let locationPattern = ValueForm("location pattern") { $0.locationPattern() }
}

extension ValueForm where Content == HTTPRequest.Method {
    /// A method.
    package static let method = ValueForm("method", write: { .scalar($0.rawValue) }) { $0.method() }
}

extension ValueForm where Content == HTTPField.Name {
    /// The name of a field that a configuration may set.
    package static let fieldName = ValueForm("field name", write: { .scalar($0.rawName) }) { value in
        value.word().flatMap(value.fieldName)
    }
}
