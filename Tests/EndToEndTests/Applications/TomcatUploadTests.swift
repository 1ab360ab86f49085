// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import FakeServers
import Testing

extension ColdUploadTests {
    @Test("at Tomcat with Basic, Digest and FORM", arguments: ["basic", "digest", "form"])
    func tomcat(kind: String) async throws {
        let login = kind == "form" ? "gateway: j-security-check, login: { timeout: 100s }" : "scheme: \(kind)"
        try await withTomcat("  - { name: portal, upstream: tomcat, \(login), credential: ann }") { tomcat in
            let upload = try await Upload(in: tomcat.folder)
            let idle = tomcat.peakKilobytes
            for framing in Self.framings {
                let answer = try await upload.send(
                    to: "http://127.0.0.1:\(tomcat.port)/\(kind)/up", framing, in: tomcat.folder)
                #expect(answer.status == 200 && answer.json?["principal"]?.string == "ann", "\(answer.summary)")
                try await tomcat.dropSessions()
            }
            let posts = tomcat.arrived.filter { $0.hasPrefix("POST") }
            let expected = "POST /\(kind)/up \(Self.size) \(upload.digest)"
            #expect(posts.count == Self.framings.count && posts.allSatisfy { $0 == expected })
            #expect(tomcat.peakKilobytes - idle <= Self.memory)
        }
    }
}
