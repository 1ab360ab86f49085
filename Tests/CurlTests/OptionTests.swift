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

    @Test("a target or a method that could end the request line is refused, in any byte")
    func requestLine() throws {
        let handle = try EasyHandle()
        for byte in UInt8.min...UInt8.max {
            let target = [UInt8(ascii: "/"), byte, UInt8(ascii: "a")]
            let isGood = byte > 0x20 && byte < 0x7F && byte != UInt8(ascii: "#")
            if isGood {
                try handle.setTarget(target.span)
            } else {
                #expect(throws: CurlError.urlMalformed, "\(byte)") { try handle.setTarget(target.span) }
            }
        }
        for target in ["", "a", "?a", "**", "*a", "http://a/", " /", "/a HTTP/1.1\r\nHost: b\r\n\r\nPOST /c"] {
            #expect(throws: CurlError.urlMalformed) { try handle.setTarget(target) }
        }
        for target in ["*", "/", "/a?b#c".replacing("#", with: "?")] { try handle.setTarget(target) }
        // Callers send queries in any encoding of letters.
        for byte in UInt8(0x80)...0xFF {
            let query = [UInt8(ascii: "/"), UInt8(ascii: "?"), byte]
            let path = [UInt8(ascii: "/"), byte, UInt8(ascii: "?")]
            try handle.setTarget(query.span)
            #expect(throws: CurlError.urlMalformed) { try handle.setTarget(path.span) }
        }
        for method in ["", "GET ", "GET /x HTTP/1.1\r\nX:", "G\0T", "GÉT", "GET\n", "(GET)"] {
            #expect(throws: CurlError.badFunctionArgument) { try handle.setMethod(method) }
        }
        for method in ["GET", "PROPFIND", "M-SEARCH", "get"] { try handle.setMethod(method) }
        try handle.clearMethod()
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

@Suite("Header lists")
struct HeaderListTests {
    /// Returns the head of a request, as the server received it, with the fields that `fill` adds.
    private func request(_ fill: @Sendable (HeaderList) throws -> Void) async throws -> [String] {
        let server = try Server()
        let client = try Client()
        let outcome = try await client.fetch(server.url("/echo-head")) { _, handle, _ in
            let list = HeaderList()
            try fill(list)
            try handle.set(.httpHeader, list)
        }
        await client.close()
        return String(decoding: outcome.body, as: UTF8.self).split(separator: "\r\n").map(String.init)
    }

    @Test("fields are sent in order, and libcurl's own fields can be suppressed")
    func order() async throws {
        let lines = try await request { list in
            list.suppress("Accept")
            try list.append(name: "Host", value: "bank.example")
            try list.append(name: "X-First", value: "1")
            try list.append(name: "X-First", value: "a: b; c")
        }
        #expect(lines == ["GET /echo-head HTTP/1.1", "Host: bank.example", "X-First: 1", "X-First: a: b; c"])
    }

    @Test("a field with an empty value is sent", arguments: ["", " ", "\t "])
    func empty(value: String) async throws {
        let lines = try await request { list in
            list.suppress("Accept")
            try list.append(name: "X-Empty", value: value)
        }
        #expect(lines.dropFirst(2) == ["X-Empty:"])
    }

    @Test("a HeaderList grows beyond its initial capacity")
    func growth() async throws {
        let lines = try await request { list in
            list.suppress("Accept")
            for number in 0..<200 {
                try list.append(name: "X-\(number)", value: String(repeating: "v", count: number))
            }
        }
        #expect(lines.count == 202)
        #expect(lines.last == "X-199: " + String(repeating: "v", count: 199))
    }

    @Test("a field that could end its line or mean something else to libcurl is refused")
    func injection() {
        let list = HeaderList()
        for value in ["a\r\nX: y", "a\nb", "a\rb", "a\0b"] {
            #expect(throws: CurlError.badFunctionArgument) { try list.append(name: "X-A", value: value) }
        }
        for name in ["", "X A", "X:", "X;", "X\r\n", "@file\0", "Ü"] {
            #expect(throws: CurlError.badFunctionArgument) { try list.append(name: name, value: "v") }
        }
        #expect(list.count == 0)
    }

    @Test("a HeaderList is set once and refilled between transfers")
    func refill() async throws {
        let server = try Server()
        let client = try Client()
        let bodies = try await client.bodies(server.url("/echo-head"), fields: ["one", "two", "three"])
        #expect(bodies.map { $0.contains("X-Number: two") } == [false, true, false])
        #expect(bodies.map { $0.contains("X-Number: one") } == [true, false, false])
        await client.close()
    }

    @Test("changing a HeaderList during a transfer stops the program")
    func inUse() async {
        await #expect(processExitsWith: .failure) {
            let server = try Server()
            _ = try await Client().fetch(server.url("/silent")) { recorder, handle, _ in
                let list = HeaderList()
                try handle.set(.httpHeader, list)
                recorder.onSend = { _ in
                    list.reset()
                    return false
                }
            }
        }
    }
}

extension Client {
    /// Runs one transfer for each of `fields`, on one handle with one list.
    fileprivate func bodies(_ url: String, fields: [String]) async throws -> [String] {
        let handle = try EasyHandle()
        let list = HeaderList()
        try handle.set(.httpHeader, list)
        var bodies: [String] = []
        for field in fields {
            list.reset()
            try list.append(name: "X-Number", value: field)
            bodies.append(String(decoding: try await fetch(url, on: handle).body, as: UTF8.self))
        }
        return bodies
    }
}
