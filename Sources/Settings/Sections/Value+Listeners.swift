// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import ChallengeHandling
internal import SettingsReading

extension Value {
    /// An address to listen at.
    func listenAddress() -> ListenAddress? {
        guard let text = word() else { return nil }
        do {
            return try ListenAddress(parsing: text)
        } catch {
            report(error.reason)
            return nil
        }
    }

    /// A host name or address, as a `Host` field names it, without a port.
    func hostName() -> String? {
        guard let text = word() else { return nil }
        guard !text.contains(where: { ":/@?#".contains($0) }) || text.hasPrefix("["),
            let location = try? Location(text),
            location.segments.isEmpty, location.port == 80, location.userInfo == nil
        else {
            report("\"\(text)\" is no host name; write it without scheme, port and wildcard")
            return nil
        }
        return location.labels.joined(separator: ".")
    }

    /// An origin as a browser writes it (RFC 6454 §6.2): scheme, host and port, in lower case and without a default port.
    func browserOrigin() -> String? {
        guard let text = word() else { return nil }
        guard let url = WebURL(text), url.path == "/", url.query == nil, !text.contains("#"), !text.hasSuffix("/")
        else {
            report("\"\(text)\" is no origin: write scheme, host and perhaps a port, such as https://app.example.com")
            return nil
        }
        return "\(url.origin)"
    }
}
