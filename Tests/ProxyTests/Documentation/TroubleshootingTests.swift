// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import FoundationEssentials
import Proxy
import Testing

@Suite("docs/troubleshooting.md")
struct TroubleshootingTests {
    @Test("docs/troubleshooting.md has a section for each code of a local reply, with its status, and no others")
    func codes() throws {
        let repository = #filePath.split(separator: "/").dropLast(4).joined(separator: "/")
        let text = try String(contentsOfFile: "/\(repository)/docs/troubleshooting.md", encoding: .utf8)
        let part = text.part(between: "\n## A request fails\n", and: "\n## ")
        let sections = part.split(separator: "\n### ").dropFirst()
        var told: [String: Substring] = [:]
        for section in sections {
            let lines = section.split(separator: "\n")
            told[lines[0].filter { $0 != "`" }] = lines.count > 1 ? lines[1] : ""
        }
        #expect(Set(told.keys) == Set(LocalReply.Code.allCases.map(\.rawValue)))
        for code in LocalReply.Code.allCases {
            #expect(told[code.rawValue]?.hasPrefix("\(code.status)") == true, "\(code.rawValue)")
        }
    }
}

extension String {
    /// What stands between the first `start` and the next `end`.
    fileprivate func part(between start: String, and end: String) -> Substring {
        guard let begin = firstRange(of: start)?.upperBound else { return "" }
        return self[begin...].firstRange(of: end).map { self[begin..<$0.lowerBound] } ?? self[begin...]
    }
}
