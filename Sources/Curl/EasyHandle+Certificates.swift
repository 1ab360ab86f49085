// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import CCurl

/// A certificate that a server has shown, as libcurl describes it.
package struct ShownCertificate: Sendable, Equatable {
    /// The subject's distinguished name: `CN = mfp.example.com`.
    package var subject = ""
    /// The issuer's.
    package var issuer = ""
    /// The names that it is for, each as `DNS:…` or `IP Address:…`.
    package var names: [String] = []
    /// The certificate itself, PEM.
    package var pem = ""
}

extension EasyHandle {
    /// The certificates that the server has shown in the last transfer, its own first; none where `certificateInfo` was not set
    /// or the handshake failed before.
    package var shownCertificates: [ShownCertificate] {
        guard let info = unsafe ccurl_get_certificates(easy) else { return [] }
        let count = Int(unsafe info.pointee.num_of_certs)
        guard count > 0, let lists = unsafe info.pointee.certinfo else { return [] }
        return (0..<min(count, Self.mostCertificates)).map { index in
            var certificate = ShownCertificate()
            var next = unsafe lists[index]
            while let entry = unsafe next {
                if let text = unsafe entry.pointee.data { unsafe certificate.take(String(cString: text)) }
                unsafe next = entry.pointee.next
            }
            return certificate
        }
    }

    /// A chain that is longer is none that anybody has a use for.
    private static let mostCertificates = 16
}

extension ShownCertificate {
    /// One line of libcurl's: `Subject:CN = …`.
    fileprivate mutating func take(_ line: String) {
        guard let colon = line.firstIndex(of: ":") else { return }
        let value = String(line[line.index(after: colon)...])
        switch line[..<colon] {
        case "Subject": subject = value
        case "Issuer": issuer = value
        case "X509v3 Subject Alternative Name":
            names = value.split(separator: ",").map { String($0.drop { $0 == " " }) }
        case "Cert": pem = value
        default: break
        }
    }
}
