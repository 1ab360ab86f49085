// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import Curl
import Testing

@Suite("Options")
struct OptionTests {
    @Test("libcurl itself takes every option to have the type that we give it")
    func types() {
        let entries = OptionCatalog.entries
        #expect(entries.count > 40)
        #expect(Set(entries.map(\.id)).count == entries.count)
        #expect(entries.compactMap { OptionCatalog.mismatch(id: $0.id, kind: $0.kind) } == [])
    }

    @Test("an option of another type, or of none, is told")
    func mismatch() {
        #expect(OptionCatalog.mismatch(id: 10_002, kind: .long) == "CURLOPT_URL is no long.")
        #expect(OptionCatalog.mismatch(id: 9_999, kind: .string) != nil)
    }

    @Test("a string with a NUL is refused, for libcurl would cut it short")
    func nul() throws {
        let handle = try EasyHandle()
        #expect(throws: CurlError.badFunctionArgument) { try handle.set(.url, "http://good.example\0.evil.example/") }
        try handle.set(.url, "http://good.example/")
        try handle.clear(.url)
    }

    @Test("an error matches its constant and speaks")
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
    @Test("the installed libcurl has what is needed")
    func installed() {
        let features = CurlFeatures.installed
        #expect(features.missing() == [])
        #expect(features.versionNumber >= CurlFeatures.minimumVersion)
        #expect(features.summary.hasPrefix("libcurl \(features.version) (\(features.tlsLibrary)) with AsynchDNS, "))
    }

    @Test("everything that is missing is told, each with what to do")
    func missing() {
        let old = CurlFeatures(
            version: "7.64.0", versionNumber: 0x07_4000, tlsLibrary: "", protocols: ["http"],
            features: [.asynchronousDNS])
        #expect(
            old.missing([.spnego]) == [
                "libcurl 7.64.0 is too old: install 7.88.0 or later (package libcurl4).",
                "libcurl 7.64.0 was built without https: install libcurl4 of the distribution.",
                "libcurl 7.64.0 was built without SPNEGO: install one that has it.",
                "libcurl 7.64.0 was built without SSL: install one that has it.",
            ])
    }
}
