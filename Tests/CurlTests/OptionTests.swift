// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import Curl
import Testing

@Suite("Options of libcurl")
struct OptionTests {
    @Test("libcurl declares every option with the type that EasyOption has")
    func types() {
        let entries = OptionCatalog.entries
        #expect(entries.count > 40)
        #expect(Set(entries.map(\.id)).count == entries.count)
        #expect(entries.compactMap { OptionCatalog.mismatch(id: $0.id, kind: $0.kind) } == [])
    }

    @Test("an option with another type, or an unknown one, is reported")
    func mismatch() {
        #expect(OptionCatalog.mismatch(id: 10_002, kind: .long) == "CURLOPT_URL is not of type long.")
        #expect(OptionCatalog.mismatch(id: 9_999, kind: .string) != nil)
    }

    @Test("a string option with a NUL is refused, because libcurl would truncate it")
    func nul() throws {
        let handle = try EasyHandle()
        #expect(throws: CurlError.badFunctionArgument) { try handle.set(.url, "http://good.example\0.evil.example/") }
        try handle.set(.url, "http://good.example/")
        try handle.clear(.url)
    }

    @Test("a CurlError matches its constant and describes itself")
    func errors() {
        do {
            throw CurlError(rawValue: 18) as any Error
        } catch CurlError.partialFile {
            #expect(CurlError.partialFile.description == "18: Transferred a partial file")
        } catch {
            Issue.record(error)
        }
    }
}

@Suite("Features of libcurl")
struct FeatureTests {
    @Test("the installed libcurl has all required features")
    func installed() {
        let features = CurlFeatures.installed
        #expect(features.missing() == [])
        #expect(features.versionNumber >= CurlFeatures.minimumVersion)
        #expect(features.summary.hasPrefix("libcurl \(features.version) (\(features.tlsLibrary)) with AsynchDNS, "))
    }

    @Test("each missing feature of libcurl is reported with a remedy")
    func missing() {
        let old = CurlFeatures(
            version: "7.64.0", versionNumber: 0x07_4000, tlsLibrary: "", protocols: ["http"],
            features: [.asynchronousDNS])
        #expect(
            old.missing([.spnego]) == [
                "libcurl 7.64.0 is too old: install 7.88.0 or later (package libcurl4).",
                "libcurl 7.64.0 was built without https: install the distribution's libcurl4.",
                "libcurl 7.64.0 was built without SPNEGO: install a libcurl that has it.",
                "libcurl 7.64.0 was built without SSL: install a libcurl that has it.",
            ])
    }
}
