// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

package import HTTPTypes
package import SettingsReading

extension Value {
    /// An absolute address of http or https, without a query where `allowsQuery` is false.
    package func webURL(allowsQuery: Bool = true) -> WebURL? {
        guard let text = word() else { return nil }
        guard let url = WebURL(text) else {
            let authority = text.split(separator: "/", omittingEmptySubsequences: false).dropFirst(2).first ?? ""
            report(
                authority.contains("@")
                    ? "an address holds no user name and password; keep them in a credential source"
                    : "is no address of http:// or https://, a host, and perhaps a port and a path")
            return nil
        }
        guard allowsQuery || url.query == nil else {
            report("must have no query: the paths of requests are appended to it")
            return nil
        }
        return url
    }

    /// An absolute address, or a path from its slash on.
    package func addressReference() -> AddressReference? {
        guard let text = word() else { return nil }
        if text.hasPrefix("/"), !text.hasPrefix("//") {
            guard WebURL("http://localhost\(text)") != nil else {
                report("holds a sign that no address has; percent-encode it")
                return nil
            }
            return .path(text)
        }
        return webURL().map(AddressReference.absolute)
    }

    /// Path and query of an address at the upstream's own origin, from the slash on.
    package func originPath() -> String? {
        switch addressReference() {
        case .path(let path)?: return path
        case .absolute?:
            report("must be a path from its slash on, such as /whoami: it is asked for at the upstream's own origin")
            return nil
        case nil: return nil
        }
    }

    /// A location pattern.
    package func locationPattern() -> LocationPattern? {
        guard let text = word() else { return nil }
        do {
            return try LocationPattern(text)
        } catch {
            report("is no location pattern: \(error.reason)")
            return nil
        }
    }

    /// A user by name or number.
    package func user() -> UserReference? {
        word().flatMap(user(named:))
    }

    /// The user whom `text`, a part of this value, names.
    package func user(named text: String) -> UserReference? {
        guard !text.isEmpty else {
            report("belongs to no user: its key is empty")
            return nil
        }
        if text.utf8.allSatisfy({ (0x30...0x39).contains($0) }) {
            // The largest value means "no user" to the kernel (credentials(7), chown(2)).
            guard let uid = UInt32(text), uid < .max else {
                report("\"\(text)\" is no user id")
                return nil
            }
            return .uid(uid)
        }
        guard !text.contains(where: { ":/ ".contains($0) }) else {
            report("\"\(text)\" is no user name")
            return nil
        }
        return .name(text)
    }

    /// A method; they are told apart by case (RFC 9110 §9.1).
    package func method() -> HTTPRequest.Method? {
        guard let text = word() else { return nil }
        let known = ["CONNECT", "DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT", "TRACE"]
        let isMisspelt = !known.contains(text) && known.contains(text.uppercased())
        guard !isMisspelt, let method = HTTPRequest.Method(text) else {
            report("\"\(text)\" is no method\(didYouMean(text, among: known))")
            return nil
        }
        return method
    }

    /// The name of a field of a request that is ours to set.
    package func fieldName(_ text: String) -> HTTPField.Name? {
        guard let name = HTTPField.Name(text), !text.hasPrefix(":") else {
            report("\"\(text)\" is no name of a field")
            return nil
        }
        let framing = [
            "connection", "content-length", "expect", "host", "keep-alive", "proxy-connection", "te", "trailer",
            "transfer-encoding", "upgrade",
        ]
        guard !framing.contains(name.canonicalName) else {
            report("\"\(text)\" belongs to the connection and cannot be set")
            return nil
        }
        return name
    }
}
