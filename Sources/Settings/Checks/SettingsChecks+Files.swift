// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import ChallengeClient
internal import ChallengeHandling
internal import SettingsReading
internal import SharedSessions

extension SettingsChecks {
    /// Warns about the files of `tls` as they are now.
    ///
    /// The daemon may run later or as another user, so problems are errors only when it starts or reloads.
    func checkFiles() {
        for upstream in upstreams { checkFiles(of: upstream.value.connections.tls, at: "\(upstream.path).tls") }
        if let sessions { checkFiles(of: sessions.store.connections.tls, at: "sessions.tls") }
        for challenge in challenges {
            guard let (tls, key) = challenge.value.kind.loginTLS else { continue }
            checkFiles(of: tls, at: "\(challenge.path).\(key)")
        }
    }

    private func checkFiles(of tls: TLSSettings, at path: String) {
        let now = utcDate()
        for (kind, file) in [(TLSFile.Kind.ca, tls.ca), (.certificate, tls.certificate), (.key, tls.key)] {
            guard let file else { continue }
            var messages: [String]
            do {
                var file = try TLSFile(kind, at: file)
                messages = file.warnings(now: now)
                file.wipe()
            } catch {
                messages = [error.reason]
            }
            for message in messages {
                reading.report(message, atPath: "\(path).\(kind.rawValue)", severity: .warning)
            }
        }
    }
}
