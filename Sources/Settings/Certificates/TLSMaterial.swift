// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Glibc
package import Secrets

/// What the files of `tls` hold, PEM, read when the daemon starts or is told to reload: what they hold later is of no
/// effect until then, so that a certificate and its key change together.
package struct TLSMaterial: Sendable, Equatable {
    /// The authorities trusted instead of the system's.
    package var authorities: [UInt8]?
    /// Our certificate.
    package var certificate: [UInt8]?
    /// Its private key.
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

/// A file of `tls` that cannot be used.
package struct TLSFileFault: Error, Sendable, Equatable {
    /// Its key within `tls`.
    package var key: String
    /// What is wrong with it, and what to do.
    package var reason: String
}

/// One file of `tls`.
struct TLSFile {
    /// What it should hold; the raw value is its key.
    enum Kind: String {
        case ca
        case certificate
        case key
    }

    let kind: Kind
    let path: String
    var bytes: [UInt8]

    /// Reads it. Throws where it holds nothing of its kind.
    init(_ kind: Kind, at path: String) throws(TLSFileFault) {
        self.kind = kind
        self.path = path
        do {
            bytes = try readFile(path)
        } catch {
            throw TLSFileFault(key: kind.rawValue, reason: "\(path): \(error.reason)")
        }
        if let reason = fault {
            wipe()
            throw TLSFileFault(key: kind.rawValue, reason: "\(path): \(reason)")
        }
    }

    /// What is worth telling of a file that can be used. `now`: `YYYYMMDDhhmmss`.
    func warnings(now: String) -> [String] {
        switch kind {
        case .ca:
            let dates = CertificateDates.all(inPEM: text).compactMap(\.self)
            var warnings: [String] = []
            if !dates.isEmpty, let last = dates.map(\.end).max(), last < now {
                warnings.append(
                    "\(path): none of its certificates is valid any more, the last until \(CertificateDates.day(last))")
            }
            if bytes.count > 64 * 1024 {
                warnings.append(
                    "\(path): is long, and is taken apart for each connection; leave `ca` out to trust the system's")
            }
            return warnings
        case .certificate:
            guard let dates = CertificateDates.all(inPEM: text).first ?? nil else { return [] }
            if dates.end < now {
                return ["\(path): the certificate has expired, on \(CertificateDates.day(dates.end))"]
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

    /// Overwrites what was read.
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
            if all.isEmpty { return "holds no certificate in PEM (-----BEGIN CERTIFICATE-----)" }
            return all.contains(nil) ? "holds a certificate that cannot be read" : nil
        case .key:
            // libcurl would ask for the password at the terminal, and everything would stand until somebody gives it.
            if holds("BEGIN ENCRYPTED PRIVATE KEY") || holds("Proc-Type: 4,ENCRYPTED") {
                return "holds an encrypted key; keep it unencrypted, readable by the daemon's user alone"
            }
            return holds("PRIVATE KEY-----") ? nil : "holds no private key in PEM (-----BEGIN PRIVATE KEY-----)"
        }
    }

    /// Looks without making a `String` of the key.
    private func holds(_ word: String) -> Bool {
        let word = Array(word.utf8)
        guard bytes.count >= word.count else { return false }
        return (0...bytes.count - word.count).contains { bytes[$0...].starts(with: word) }
    }
}
