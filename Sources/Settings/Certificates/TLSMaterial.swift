// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

package import ChallengeHandling
internal import Glibc
package import Secrets

/// Content of the PEM files of `tls`.
///
/// The files are read at start and reload only, so that a certificate and its key change together.
package struct TLSMaterial: Sendable, Equatable {
    /// Authorities that are trusted instead of the system's.
    package var authorities: [UInt8]?
    /// Client certificate.
    package var certificate: [UInt8]?
    /// Private key of the client certificate.
    package var key: Secret?

    /// Reads the files that `settings` names.
    package init(_ settings: TLSSettings) throws(TLSFileFault) {
        authorities = try settings.ca.map { path throws(TLSFileFault) in try TLSFile(.ca, at: path).bytes }
        certificate = try settings.certificate.map { path throws(TLSFileFault) in
            try TLSFile(.certificate, at: path).bytes
        }
        key = try settings.key.map { path throws(TLSFileFault) in
            var file = try TLSFile(.key, at: path)
            return Secret(taking: &file.bytes)
        }
    }
}

/// Problem with a file of `tls`.
package struct TLSFileFault: Error, Sendable, Equatable {
    /// Key within `tls`.
    package var key: String
    /// Fault and remedy.
    package var reason: String
    /// True if the cause may pass by itself.
    package var mayPass = false
}

/// One file of `tls`.
struct TLSFile {
    /// Content that the file should have. The raw value is the key within `tls`.
    enum Kind: String {
        case ca
        case certificate
        case key
    }

    let kind: Kind
    let path: String
    var bytes: [UInt8]

    /// Reads the file. Throws if the content is not of the expected kind.
    init(_ kind: Kind, at path: String) throws(TLSFileFault) {
        self.kind = kind
        self.path = path
        do {
            bytes = try readFile(path)
        } catch {
            throw TLSFileFault(key: kind.rawValue, reason: "\(path): \(error.reason)", mayPass: error.mayPass)
        }
        if let reason = fault {
            wipe()
            throw TLSFileFault(key: kind.rawValue, reason: "\(path): \(reason)")
        }
    }

    /// Returns warnings about a usable file. `now` is `YYYYMMDDhhmmss` in UTC.
    func warnings(now: String) -> [String] {
        switch kind {
        case .ca:
            let dates = CertificateDates.all(inPEM: text).compactMap(\.self)
            var warnings: [String] = []
            if !dates.isEmpty, let last = dates.map(\.end).max(), last < now {
                warnings.append(
                    "\(path): all its certificates have expired, the last on \(CertificateDates.day(last))")
            }
            if bytes.count > 64 * 1024 {
                warnings.append(
                    "\(path): is larger than 64 KiB and is parsed for each connection; leave `ca` out to trust the system's authorities"
                )
            }
            return warnings
        case .certificate:
            guard let dates = CertificateDates.all(inPEM: text).first ?? nil else { return [] }
            if dates.end < now {
                return ["\(path): the certificate expired on \(CertificateDates.day(dates.end))"]
            }
            if dates.begin > now {
                return ["\(path): the certificate is not valid before \(CertificateDates.day(dates.begin))"]
            }
            return []
        case .key:
            var status = stat()
            guard unsafe stat(path, &status) == 0, status.st_mode & 0o006 != 0 else { return [] }
            return ["\(path): other users can read or write the key: chmod o= \(path)"]
        }
    }

    /// Overwrites the content in memory.
    mutating func wipe() {
        unsafe bytes.withUnsafeMutableBytes { bytes in
            guard let start = bytes.baseAddress else { return }
            unsafe explicit_bzero(start, bytes.count)
        }
        bytes = []
    }

    private var text: String { String(decoding: bytes, as: UTF8.self) }

    private var fault: String? {
        switch kind {
        case .ca, .certificate:
            let all = CertificateDates.all(inPEM: text)
            if all.isEmpty { return "contains no certificate in PEM (-----BEGIN CERTIFICATE-----)" }
            return all.contains(nil) ? "contains a certificate that cannot be read" : nil
        case .key:
            // libcurl would ask for the password at the terminal and block the event loop until it is entered.
            if contains("BEGIN ENCRYPTED PRIVATE KEY") || contains("Proc-Type: 4,ENCRYPTED") {
                return "contains an encrypted key; store it unencrypted, readable by the daemon's user only"
            }
            return contains("PRIVATE KEY-----") ? nil : "contains no private key in PEM (-----BEGIN PRIVATE KEY-----)"
        }
    }

    /// Returns whether the content contains `text`, without making a `String` of the key.
    private func contains(_ text: String) -> Bool {
        let text = Array(text.utf8)
        guard bytes.count >= text.count else { return false }
        return (0...bytes.count - text.count).contains { bytes[$0...].starts(with: text) }
    }
}
