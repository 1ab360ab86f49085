// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeClient
import ChallengeHandling
import Curl
import FoundationEssentials
import Glibc
import Secrets
import Settings
import Testing

@Suite("Files of certificates and keys")
struct TLSFileTests {
    private static let key = "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n"

    /// Writes the text to a file, and returns the problems of a configuration with that file under `key`; its path reads `F`.
    private func warnings(_ key: String, _ text: String, mode: mode_t = 0o600) throws -> [String] {
        let path = try write(text, mode: mode)
        defer { try? FileManager.default.removeItem(atPath: path) }
        // A certificate needs a key and vice versa: the other file is valid.
        let other = try write(key == "key" ? Self.valid : Self.key)
        defer { try? FileManager.default.removeItem(atPath: other) }
        let more = ["certificate": ", key: \(other)", "key": ", certificate: \(other)"][key] ?? ""
        return problems(frame(upstream: "tls: { \(key): \(path)\(more) }")).map {
            String($0.drop { $0 != "u" }).replacing(path, with: "F")
        }
    }

    private func write(_ text: String, mode: mode_t = 0o600) throws -> String {
        let path = "/tmp/countersign-\(UUID().uuidString).pem"
        let descriptor = unsafe open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode)
        fchmod(descriptor, mode)
        var text = text
        let count = text.withUTF8 { unsafe Glibc.write(descriptor, $0.baseAddress, $0.count) }
        #expect(count == text.utf8.count)
        close(descriptor)
        return path
    }

    @Test("usable files of certificates and keys cause no problems")
    func good() throws {
        #expect(try warnings("ca", Self.valid + Self.expired) == [])
        #expect(try warnings("certificate", "a comment\n" + Self.valid.replacing("\n", with: "\r\n")) == [])
        #expect(try warnings("key", Self.valid + Self.key) == [])
    }

    @Test("files of certificates and keys that cannot be used are warned about")
    func unusable() throws {
        #expect(
            problems(frame(upstream: "tls: { ca: /nowhere/ca.pem }")) == [
                "f:3:79: upstreams.u.tls.ca: warning: /nowhere/ca.pem: there is no such file"
            ])
        let noCertificate =
            "upstreams.u.tls.ca: warning: F: contains no certificate in PEM (-----BEGIN CERTIFICATE-----)"
        #expect(try warnings("ca", "") == [noCertificate])
        #expect(try warnings("ca", Self.key) == [noCertificate])
        #expect(try warnings("ca", String(Self.valid.dropLast(40))) == [noCertificate])
        let damaged = "upstreams.u.tls.ca: warning: F: contains a certificate that cannot be read"
        #expect(try warnings("ca", Self.valid + Self.valid.replacing("MIIB", with: "MII*")) == [damaged])
        #expect(try warnings("ca", Self.valid.replacing("MIIBF", with: "MIIBG")) == [damaged])
        #expect(
            try warnings("key", Self.valid) == [
                "upstreams.u.tls.key: warning: F: contains no private key in PEM (-----BEGIN PRIVATE KEY-----)"
            ])
        for head in [
            "-----BEGIN ENCRYPTED PRIVATE KEY-----", "-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED",
        ] {
            #expect(
                try warnings("key", head + "\nAAAA\n") == [
                    "upstreams.u.tls.key: warning: F: contains an encrypted key; store it unencrypted, readable by the daemon's user "
                        + "only"
                ])
        }
    }

    @Test("expired certificates, large CA files and readable keys are warned about")
    func dubious() throws {
        #expect(
            try warnings("certificate", Self.expired + Self.valid) == [
                "upstreams.u.tls.certificate: warning: F: the certificate expired on 2021-02-03"
            ])
        #expect(
            try warnings("certificate", Self.later) == [
                "upstreams.u.tls.certificate: warning: F: the certificate is not valid before 2090-01-01"
            ])
        #expect(
            try warnings("ca", Self.expired) == [
                "upstreams.u.tls.ca: warning: F: all its certificates have expired, the last on 2021-02-03"
            ])
        #expect(
            try warnings("key", Self.key, mode: 0o644) == [
                "upstreams.u.tls.key: warning: F: other users can read or write the key: chmod o= F"
            ])
        let long = String(repeating: Self.valid, count: 200)
        let told = try warnings("ca", long)
        #expect(
            told == [
                "upstreams.u.tls.ca: warning: F: is larger than 64 KiB and is parsed for each connection; leave `ca` out to trust the system's authorities"
            ])
    }

    @Test("tls.minimum is 1.2 or 1.3")
    func minimum() {
        #expect(parsed(frame())?.upstreams.first?.connections.tls.minimum == .tls12)
        #expect(
            parsed(frame(upstream: "tls: { minimum: \"1.3\" }"))?.upstreams.first?.connections.tls.minimum == .tls13)
        #expect(
            problems(frame(upstream: "tls: { minimum: 1.1 }")) == [
                "f:3:84: upstreams.u.tls.minimum: \"1.1\" is not one of 1.2, 1.3"
            ])
    }

    @Test("certificate and key files are read unchanged, and the first unusable one is named by its key")
    func material() throws {
        let (certificate, key) = (try write(Self.valid), try write(Self.key))
        defer { for path in [certificate, key] { try? FileManager.default.removeItem(atPath: path) } }
        let yaml = frame(upstream: "tls: { ca: \(certificate), certificate: \(certificate), key: \(key) }")
        var tls = try #require(parsed(yaml)?.upstreams.first?.connections.tls)
        let material = try TLSMaterial(tls)
        #expect(material.authorities == Array(Self.valid.utf8) && material.certificate == material.authorities)
        #expect(material.key == Secret(Self.key))
        tls.key = certificate
        #expect(throws: TLSFileFault.self) { try TLSMaterial(tls) }
        do { _ = try TLSMaterial(tls) } catch { #expect(error.key == "key") }
    }

    private static let valid = """
        -----BEGIN CERTIFICATE-----
        MIIBFDCBuwITMeR8J1yEadvwkcKrruLhJt2lKTAKBggqhkjOPQQDAjANMQswCQYD
        VQQDDAJjYTAgFw0yMDAxMDEwMDAwMDBaGA8yMDkxMDEwMTAwMDAwMFowDDEKMAgG
        A1UEAwwBYTBZMBMGByqGSM49AgEGCCqGSM49AwEHA0IABHipb/hvYTh7qWvnKg0j
        UhP3D2e8HHbYnsBQ7PROyi7n+lSHHDi8Ts6mH4vTUWnwHTSEJnNe7Nb9/1cFpPGM
        73gwCgYIKoZIzj0EAwIDSAAwRQIhAPjd9vY6rCpfK3wtW/VrHvhgYiritaf3qYGV
        8m0iRr8iAiAE8YWPLZAm+DHdt2FeqFKnbbzG/P/4GI83nuqFkzbonQ==
        -----END CERTIFICATE-----

        """
    private static let expired = """
        -----BEGIN CERTIFICATE-----
        MIIBEjCBugIUGDV5eapNd4bCVF6cJ1QGcbXsZvcwCgYIKoZIzj0EAwIwDTELMAkG
        A1UEAwwCY2EwHhcNMjAwMTAxMDAwMDAwWhcNMjEwMjAzMDQwNTA2WjAMMQowCAYD
        VQQDDAFhMFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEeKlv+G9hOHupa+cqDSNS
        E/cPZ7wcdtiewFDs9E7KLuf6VIccOLxOzqYfi9NRafAdNIQmc17s1v3/VwWk8Yzv
        eDAKBggqhkjOPQQDAgNHADBEAiBH39NAnOi0hJG0d7t8EvIm8dVEhN/TBRLPJG5U
        U0Xj5AIgYdre+0FW+EYu9ZpJQJNQq2zD06hBSF5IT7mPTReRVYk=
        -----END CERTIFICATE-----

        """
    private static let later = """
        -----BEGIN CERTIFICATE-----
        MIIBFzCBvgIUTMn1FUAu2GpKqZgJIbUUC+lZ7DwwCgYIKoZIzj0EAwIwDTELMAkG
        A1UEAwwCY2EwIhgPMjA5MDAxMDEwMDAwMDBaGA8yMDkxMDEwMTAwMDAwMFowDDEK
        MAgGA1UEAwwBYTBZMBMGByqGSM49AgEGCCqGSM49AwEHA0IABHipb/hvYTh7qWvn
        Kg0jUhP3D2e8HHbYnsBQ7PROyi7n+lSHHDi8Ts6mH4vTUWnwHTSEJnNe7Nb9/1cF
        pPGM73gwCgYIKoZIzj0EAwIDSAAwRQIhANHIZaKStisDdgKCmc1K4whm58zFXicz
        wLgonYKMBQ6NAiAB9zuV1R1W8mZmltiPDMdEIdS0vcksrnX/gG6/up1IUw==
        -----END CERTIFICATE-----

        """
}
