// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import TestSupport
import Testing

@Suite("Login pages of a grammar, submitted by Chromium and by the daemon's reader")
struct ChromiumFormsTests {
    private static let script =
        #filePath.split(separator: "/").dropLast(3).map { "/\($0)" }.joined() + "/Scripts/form-submissions"

    @Test("are the same requests, or refused with a reason", .timeLimit(.minutes(15)))
    func same() async throws {
        let seed = Int.random(in: 1000...1_000_000)
        let folder = try Folder()
        var forms: [SubmittedForm] = []
        // In pieces: a program gets half a minute.
        for piece in 0..<10 {
            let run = try await Command.run([Self.script, "--seed", "\(seed + piece)", "--count", "30"], in: folder)
            #expect(run.exit == 0, "\(run.errors)")
            forms += run.output.split(separator: "\n").map { line in
                SubmittedForm(line.split(separator: "\t", omittingEmptySubsequences: false).map(String.init))
            }
        }
        #expect(forms.count >= 200)
        var refusals = 0
        for form in forms {
            switch form.outcome {
            case .same: #expect(!form.isHeld, "seed \(seed): \(form)")
            case .refused: if !form.isHeld { refusals += 1 }
            case .different(let difference): Issue.record("seed \(seed): \(form)\n\(difference)")
            }
        }
        #expect(refusals * 20 < forms.count, "seed \(seed): \(refusals) refused")
    }
}
