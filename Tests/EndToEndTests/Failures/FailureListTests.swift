// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import FakeServers
import Testing

@Suite("What fails")
struct FailureListTests {
    @Test(
        "each failure of the list is told with its cause and its remedy, and nothing internal", .timeLimit(.minutes(10))
    )
    func failures() async throws {
        async let upstreams = UpstreamFailures.answers()
        async let logins = LoginFailures.answers()
        async let local = LocalFailures.answers()
        let answers = try await [upstreams, logins, local].reduce(into: [String: Curl]()) { $0.merge($1) { $1 } }
        #expect(Set(answers.keys) == Set(Failure.all.map(\.name)))
        #expect(Failure.all.count >= 30)
        for failure in Failure.all {
            guard let answer = answers[failure.name] else { continue }
            expect(failure, in: answer)
        }
    }

    @Test("each cause of the list stands in docs/troubleshooting.md, below its code")
    func documented() {
        let page = Repository.text(of: "docs/troubleshooting.md")
        for failure in Failure.all {
            let section = page.split(separator: "\n### `\(failure.code)`\n").dropFirst().first?
                .split(separator: "\n##").first
            let words = section?.split { $0 == " " || $0 == "\n" }.joined(separator: " ") ?? ""
            // What varies stands behind one of these signs.
            let cause = failure.cause.prefix { !"\"(:".contains($0) }
            #expect(words.contains(cause.trimmed), "\(failure.name): \(cause)")
        }
    }

    private func expect(_ failure: Failure, in answer: Curl) {
        let told = "\(failure.name): \(answer.summary)"
        #expect(answer.status == failure.status && answer.code == failure.code, "\(told)")
        #expect(answer.json?["status"] == .integer(Int64(failure.status)), "\(told)")
        #expect(answer.json?["type"]?.string == "urn:countersign:problem:\(failure.code)", "\(told)")
        let id = answer.json?["exchange_id"]?.string ?? ""
        #expect(id.wholeMatch(of: #/[0-9a-f]{8}-\d+-\d+/#) != nil, "\(told)")
        #expect(answer.json?["title"]?.string?.isEmpty == false, "\(told)")
        #expect(answer.detail.contains(failure.cause), "\(told)")
        #expect(answer.detail.contains(failure.remedy), "\(told)")
        let isSentence = answer.detail.first?.isUppercase == true && [".", "`"].contains(answer.detail.last)
        #expect(isSentence && !answer.detail.contains(".."), "\(told)")
        let proxyStatus = answer.field("proxy-status") ?? ""
        #expect(proxyStatus.hasPrefix("countersign; error=\(failure.error); "), "\(told) \(proxyStatus)")
        #expect(proxyStatus.hasSuffix("; exchange_id=\"\(id)\""), "\(told) \(proxyStatus)")
        // Neither addresses nor files nor values; that of the listener the caller knows.
        let detail = answer.detail.replacing(#/[Ll]istener 127\.0\.0\.1:\d+/#, with: "")
        for internals in ["127.0.0.1", "localhost", "224.0.0.1", "invalid/", "/tmp", "SSL", "error:", "s3cr3t"] {
            #expect(!detail.contains(internals), "\(told)")
        }
    }
}

extension Substring {
    /// Without the space at its end.
    fileprivate var trimmed: Substring { last == " " ? dropLast() : self }
}
